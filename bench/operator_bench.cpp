// Question: what do the frozen operator, its paths and the collapse factorial cost, in forward passes of the
// same weights on the same tokens in the same run? BERT-base shape, 128 tokens.
//
//   bench: operator_bench [threads] [paths|growth|slice|spectrum|factorial]
//   goals: exact path sums of all lengths <= 10 forward passes; growth over L = 6..48 with slope <= 2.1; a
//   row slice <= 3; 16 singular values at relative residual 1e-4 in <= 160 applications; 12 variants <= 9.5
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>

#include "checkpoint/load.h"
#include "collapse/collapse.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "operator/frozen.h"
#include "operator/paths.h"
#include "operator/spectrum.h"
#include "pass/pass.h"
#include "pass/variants.h"
#include "support/random_checkpoint.h"
#include "support/temporary_folder.h"
#include "support/tiny.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

constexpr int kRepeats = 5;

double seconds(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Both in turn, so that a change of the machine's mood meets both; medians.
std::pair<double, double> in_turn(const std::function<void()>& a, const std::function<void()>& b) {
  std::vector<double> first, second;
  for (int i = 0; i < kRepeats; ++i) {
    first.push_back(seconds(a));
    second.push_back(seconds(b));
  }
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  return {first[kRepeats / 2], second[kRepeats / 2]};
}

double relative(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

class Bench {
 public:
  explicit Bench(const Checkpoint& checkpoint)
      : spec_(checkpoint.spec()), source_(checkpoint_source(checkpoint, "float32", "cpu")) {
    batch_ = make_batches(test::random_samples({128}, spec_.embedding.vocabulary), spec_, 1).front();
    for (int64_t l = 0; l < spec_.depth(); ++l)
      weights_.push_back(source_->load(fmt::format("blocks.{}", l)));
  }

  int paths() {
    const at::Tensor y = forward();
    const FrozenNetwork frozen(spec_, *source_, batch_);
    const double error =
        relative(path_sums(frozen.trunk(), frozen.input()).sum(0).squeeze(0).squeeze(0) + frozen.bias(), y);
    if (!verified("path sums and bias against the output", error, 1e-4)) return 1;
    const auto [plain, sums] = in_turn([&] { forward(); },
                                       [&] {
                                         const FrozenNetwork once(spec_, *source_, batch_);
                                         path_sums(once.trunk(), once.input());
                                       });
    return report("all path sums, freezing included", sums / plain, 10);
  }

  // One set of weights used again and again, so that 48 layers fit everywhere.
  int growth() {
    std::vector<double> x, y;
    for (const int64_t layers : {6, 12, 24, 48}) {
      ModelSpec deep = spec_;
      deep.blocks.assign(static_cast<size_t>(layers), spec_.blocks.front());
      deep.stored_blocks = 1;
      const FrozenNetwork frozen(deep, *source_, batch_);
      std::vector<double> times;
      for (int i = 0; i < 3; ++i)
        times.push_back(seconds([&] { path_sums(frozen.trunk(), frozen.input()); }));
      std::sort(times.begin(), times.end());
      fmt::print("  {:>2} layers: {:.2f} s\n", layers, times[1]);
      x.push_back(std::log(static_cast<double>(layers)));
      y.push_back(std::log(times[1]));
    }
    const double n = static_cast<double>(x.size());
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0; i < x.size(); ++i) sx += x[i], sy += y[i], sxx += x[i] * x[i], sxy += x[i] * y[i];
    return report("slope of log time over log layers", (n * sxy - sx * sy) / (n * sxx - sx * sx), 2.1);
  }

  int slice() {
    const at::Tensor y = forward();
    const FrozenNetwork frozen(spec_, *source_, batch_);
    const at::Tensor u = at::randn({spec_.width});
    const at::Tensor row = frozen.row_slice(5, u);
    const double sum = (row * frozen.input()).sum().item<double>() + frozen.bias()[5].dot(u).item<double>();
    if (!verified("tokens and bias against one output",
                  std::fabs(sum - y[5].dot(u).item<double>()) / y[5].norm().item<double>(), 1e-3))
      return 1;
    const auto [plain, whole] = in_turn([&] { forward(); },
                                        [&] {
                                          const FrozenNetwork once(spec_, *source_, batch_);
                                          once.row_slice(5, u);
                                        });
    const auto [again, alone] = in_turn([&] { forward(); }, [&] { frozen.row_slice(5, u); });
    report("a further row slice", alone / again, 3);
    return report("one row slice, freezing included", whole / plain, 3);
  }

  int spectrum() {
    const FrozenNetwork frozen(spec_, *source_, batch_);
    const TopSpectrum top = top_spectrum(frozen.trunk(), frozen.input(), 16, 1e-4, 160, 1);
    const double worst = *std::max_element(top.residual.begin(), top.residual.end());
    fmt::print("  sigma_1 {:.4g}, sigma_16 {:.4g}, largest relative residual {:.2g}\n", top.sigma.front(),
               top.sigma.back(), worst);
    const int fault =
        report("applications for 16 singular values", static_cast<double>(top.applications), 160);
    return worst <= 1e-4 ? fault : 1;
  }

  int factorial() {
    const std::vector<CollapseVariant> variants = collapse_variants(spec_, "factorial");
    const auto samples = test::random_samples(std::vector<int64_t>(8, 128), spec_.embedding.vocabulary);
    const auto run = [&](bool all) {
      PassPlan plan;
      for (const CollapseVariant& v : variants)
        if (all || v.name == "full") plan.variants.push_back({v.name, v.spec, 0, 0});
      plan.sources = {source_.get()};
      plan.inputs.push_back(make_batches(samples, spec_, 8));
      if (all) plan.lenses = choose_lenses({"residual"});
      plan.layers = std::vector<bool>(static_cast<size_t>(spec_.depth()), true);
      ResultTable table;
      std::vector<std::string> notes;
      run_pass(plan, table, notes, {});
      return table;
    };
    const ResultTable table = run(true);
    if (table.find("-attention-skip+mlp+norm", "residual_l1inf_rel", 11) == nullptr) return 1;
    const auto [plain, all] = in_turn([&] { run(false); }, [&] { run(true); });
    return report("12 variants with their residuals", all / plain, 9.5);
  }

 private:
  at::Tensor forward() {
    BlockObserver nobody;
    at::Tensor x = embed(batch_, spec_, source_->load("embed"), *source_);
    for (int64_t l = 0; l < spec_.depth(); ++l)
      x = run_block(x, spec_.blocks[static_cast<size_t>(l)], weights_[static_cast<size_t>(l)], batch_,
                    nobody);
    return x;
  }

  static bool verified(const char* what, double error, double tolerance) {
    fmt::print("  {}: {:.2g}\n", what, error);
    if (error <= tolerance) return true;
    fmt::print("  they do not agree: no times\n");
    return false;
  }
  static int report(const char* what, double value, double goal) {
    fmt::print("{:<44} {:>8.2f}   (goal: at most {})\n", what, value, goal);
    return value <= goal ? 0 : 1;
  }

  ModelSpec spec_;
  std::unique_ptr<WeightSource> source_;
  Batch batch_;
  std::vector<Weights> weights_;
};

int run(int threads, const std::string& which) {
  const c10::NoGradGuard no_grad;
  use_threads(threads);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  const TemporaryFolder folder;
  test::write_random_checkpoint(folder.path(), test::bert_config(), StoredType::f32);
  const Checkpoint checkpoint(folder.path());
  Bench bench(checkpoint);
  fmt::print("BERT-base shape, 128 tokens, {} threads, LibTorch {}; in forward passes\n", thread_count(),
             torch_version());
  int faults = 0;
  if (which.empty() || which == "paths") faults += bench.paths();
  if (which.empty() || which == "slice") faults += bench.slice();
  if (which.empty() || which == "spectrum") faults += bench.spectrum();
  if (which.empty() || which == "factorial") faults += bench.factorial();
  if (which.empty() || which == "growth") faults += bench.growth();
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rankscope

int main(int argc, char** argv) {
  return rankscope::run(argc > 1 ? std::atoi(argv[1]) : 2, argc > 2 ? argv[2] : "");
}
