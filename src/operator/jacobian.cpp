#include "operator/jacobian.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "model/block.h"
#include "model/truncate.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

constexpr uint32_t kStream = 0x6a61636f;  // "jaco"
constexpr double kStep = 1e-5;            // relative: the error is its square and rounding over it

// The trunk as a function of the residual stream before the first block, its weights held.
class Trunk {
 public:
  Trunk(const ModelSpec& spec, WeightSource& source, const Batch& batch) : spec_(spec), batch_(batch) {
    for (const BlockSpec& stored : spec.blocks) {
      BlockSpec block = stored;
      Weights weights = source.load(fmt::format("blocks.{}", block.weights));
      if (is_truncated(block)) weights = truncated(weights, block);
      blocks_.emplace_back(block, std::move(weights));
    }
    if (spec.final_norm.there()) final_norm_ = source.load("ln_final");
  }
  at::Tensor operator()(at::Tensor x) const {
    BlockObserver nobody;
    for (const auto& [block, weights] : blocks_) x = run_block(x, block, weights, batch_, nobody);
    return apply_norm(x, spec_.final_norm, final_norm_, "");
  }

 private:
  const ModelSpec& spec_;
  const Batch& batch_;
  std::vector<std::pair<BlockSpec, Weights>> blocks_;
  Weights final_norm_;
};

}  // namespace

JacobianDistance jacobian_distance(const FrozenNetwork& frozen, const ModelSpec& spec, WeightSource& source,
                                   const Batch& batch, int64_t probes, uint64_t seed) {
  const c10::NoGradGuard no_grad;
  const at::Tensor& x = frozen.input();
  if (x.scalar_type() != at::kDouble)
    throw Error("the Jacobian is taken by differences: they need --dtype float64");
  const Trunk trunk(spec, source, batch);
  struct Squares {
    double apart = 0, of_true = 0, of_frozen = 0;
  };
  std::vector<Squares> each;
  Squares all;
  for (int64_t k = 0; k < probes; ++k) {
    const at::Tensor drawn = at::empty(x.sizes(), at::kDouble);
    const Philox random{seed, kStream, static_cast<uint32_t>(k)};
    for (int64_t i = 0; i < x.numel(); ++i)
      drawn.data_ptr<double>()[i] = random.normal(static_cast<uint64_t>(i));
    const at::Tensor v = drawn.to(x.device());
    const double h = kStep * x.norm().item<double>() / v.norm().item<double>();
    const at::Tensor Jv = (trunk(x + v * h) - trunk(x - v * h)) / (2 * h);
    const at::Tensor Tv = frozen.trunk().apply(v);
    each.push_back({(Jv - Tv).square().sum().item<double>(), Jv.square().sum().item<double>(),
                    Tv.square().sum().item<double>()});
    all.apart += each.back().apart;
    all.of_true += each.back().of_true;
    all.of_frozen += each.back().of_frozen;
  }
  const auto ratio = [&](double Squares::*of, const Squares& without) {
    return std::sqrt((all.*of - without.*of) / (all.of_true - without.of_true));
  };
  const auto error = [&](double Squares::*of) {
    if (each.size() < 2) return std::nan("");
    double sum = 0;
    for (const Squares& one : each) sum += std::pow(ratio(of, one) - ratio(of, {}), 2);
    const auto n = static_cast<double>(each.size());
    return std::sqrt(sum * (n - 1) / n);
  };
  return {ratio(&Squares::apart, {}), ratio(&Squares::of_frozen, {}), error(&Squares::apart),
          error(&Squares::of_frozen), probes};
}

}  // namespace rankscope
