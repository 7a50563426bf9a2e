#include "model/head_means.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "attention/variant.h"
#include "model/block.h"
#include "model/ends.h"
#include "parts/program.h"

namespace rankscope {
namespace {

/// Adds up what the heads of one block carry.
class Carried : public BlockObserver {
 public:
  bool wants(std::string_view site) const override { return site == "attn.hook_z"; }
  void see(std::string_view site, const at::Tensor& z, const TilePlace&) override {
    if (site != "attn.hook_z") return;
    const at::Tensor here = z.to(at::kDouble).sum(0);
    sum_ = sum_.defined() ? sum_ + here : here;
    tokens_ += z.size(0);
  }
  at::Tensor mean() const { return (sum_ / static_cast<double>(tokens_)).cpu(); }  // [H, d_v]

 private:
  at::Tensor sum_;
  int64_t tokens_ = 0;
};

std::vector<std::vector<double>> rows_of(const at::Tensor& t) {
  const at::Tensor here = t.to(at::kCPU, at::kDouble).contiguous();
  std::vector<std::vector<double>> out;
  for (int64_t h = 0; h < here.size(0); ++h) {
    const double* row = here.data_ptr<double>() + h * here.size(1);
    out.emplace_back(row, row + here.size(1));
  }
  return out;
}

at::Tensor carried_by_biases(const BranchSpec& branch, const Weights& weights) {
  const AttentionSpec& a = *branch.attention();
  at::Tensor v = at::zeros({a.kv_heads * a.d_v}, at::kDouble);
  if (attention_variant(a.variant).row_stochastic && !a.sinks) {
    if (const at::Tensor& b = weights.get_or_none(branch.name + ".b_V"); b.defined())
      v += b.to(at::kCPU, at::kDouble);
    const at::Tensor& shift =
        branch.before.acts() ? weights.get_or_none(branch.norm_name + ".b") : at::Tensor();
    if (shift.defined())
      v += at::mv(weights.get(branch.name + ".W_V").to(at::kCPU, at::kDouble),
                  shift.to(at::kCPU, at::kDouble));
  }
  return v.view({a.kv_heads, 1, a.d_v})
      .expand({a.kv_heads, a.heads / a.kv_heads, a.d_v})
      .reshape({a.heads, a.d_v});
}

}  // namespace

std::vector<HeadMeans> head_means(WeightSource& source, const std::vector<Batch>& batches) {
  const c10::NoGradGuard no_grad;
  const ModelSpec& spec = source.spec();
  std::vector<at::Tensor> x;
  {
    const Weights weights = source.load("embed");
    for (const Batch& b : batches) x.push_back(embed(b, spec, weights, source));
  }
  std::vector<HeadMeans> out;
  for (const BlockSpec& block : spec.blocks) {
    const Weights weights = source.load(fmt::format("blocks.{}", block.weights));
    Carried carried;
    for (size_t b = 0; b < batches.size(); ++b) x[b] = run_block(x[b], block, weights, batches[b], carried);
    const BranchSpec* branch = block.attention_branch();
    out.emplace_back();
    if (branch == nullptr || branch->name != "attn" || !branch->attention()->value_map ||
        !program_of(*branch, spec.width).writes_heads())
      continue;
    out.back() = {rows_of(carried.mean()), rows_of(carried_by_biases(*branch, weights))};
  }
  return out;
}

ModelSpec with_fixed_head(ModelSpec spec, int64_t layer, int64_t head, const std::vector<double>& values) {
  AttentionSpec& a = spec.blocks[static_cast<size_t>(layer)].attention();
  a.heads_fixed.push_back(head);
  a.fixed_values.insert(a.fixed_values.end(), values.begin(), values.end());
  return spec;
}

}  // namespace rankscope
