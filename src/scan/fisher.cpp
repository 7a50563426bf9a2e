#include "scan/fisher.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "base/some_places.h"
#include "importance/output_scores.h"
#include "pass/output.h"

namespace rankscope {
namespace {

constexpr int kDraws = 8;
constexpr int64_t kMostTokens = 32;    // of a longer sample, those that the cheap spread reads
constexpr double kFarFromMedian = 20;  // a token this many medians away does not speak for the rest

using at::Tensor;

/// The content tokens of a sample that are looked at, as rows of its batch.
std::vector<int64_t> content_rows(const Batch& batch, size_t s) {
  std::vector<int64_t> all, some;
  for (int64_t i = batch.offsets[s]; i < batch.offsets[s + 1]; ++i)
    if (batch.content[static_cast<size_t>(i)]) all.push_back(i);
  for (const int64_t i : some_places(static_cast<int64_t>(all.size()), kMostTokens))
    some.push_back(all[static_cast<size_t>(i)]);
  return some;
}

/// The metric of one layer, and the tokens it is laid over.
class Layer {
 public:
  explicit Layer(int64_t width) : metric_(at::zeros({width, width}, at::kDouble)) {}

  void add_gradient(const Tensor& g) {
    const Tensor wide = g.to(at::kDouble).cpu();
    metric_.addmm_(wide.t(), wide);
  }
  void add_tokens(const Tensor& x) { samples_.push_back(x.to(at::kDouble).cpu()); }

  /// Ratio of both sums over samples, and its error by leaving out each sample in turn.
  std::pair<double, double> spread(bool causal) const {
    const Tensor middle = at::cat(samples_).mean(0);
    std::vector<Sums> all;
    Sums total;
    for (const Tensor& x : samples_) {
      if (x.size(0) < 2) continue;
      all.push_back(look(x - middle, causal));
      total.add(all.back(), 1);
    }
    if (all.empty()) return {kNone, kNone};
    const double value = ratio(total);
    double squares = 0;
    const auto n = static_cast<double>(all.size());
    for (const Sums& s : all) {
      Sums rest = total;
      rest.add(s, -1);
      squares += (ratio(rest) - value) * (ratio(rest) - value);
    }
    return {value, n > 1 ? std::sqrt(squares * (n - 1) / n) : kNone};
  }
  int64_t samples() const { return static_cast<int64_t>(samples_.size()); }

 private:
  /// In the metric: of a sample's tokens, or of several samples'.
  struct Sums {
    double count = 0, squares = 0, within = 0;
    Tensor sum = {};  // [d]
    void add(const Sums& s, double sign) {
      count += sign * s.count, squares += sign * s.squares, within += sign * s.within;
      sum = sum.defined() ? sum + sign * s.sum : sign * s.sum;
    }
  };

  Tensor sizes(const Tensor& x) const { return (x.matmul(metric_) * x).sum(1); }  // |x_i B|^2

  Sums look(const Tensor& x, bool causal) const {
    const Tensor far = sizes(x - x.mean(0));
    const Tensor w = (far <= kFarFromMedian * far.median()).to(at::kDouble), kept = w.unsqueeze(1);
    const Tensor mean = at::mv(x.t(), w) / w.sum();
    Tensor c = (x - mean) * kept;
    Sums out;
    out.count = w.sum().item<double>();
    out.sum = at::mv(x.t(), w);
    out.squares = sizes(x * kept).sum().item<double>();
    if (causal) c = (c - c.cumsum(0) / w.cumsum(0).clamp_min(1).unsqueeze(1)) * kept;
    out.within = sizes(c).sum().item<double>();
    return out;
  }

  double ratio(const Sums& s) const {
    const double about_mean = s.squares - sizes(s.sum.unsqueeze(0)).item<double>() / s.count;
    return about_mean > 0 ? s.within / about_mean : kNone;
  }

  Tensor metric_;                // [d, d], times the gradients in it
  std::vector<Tensor> samples_;  // [n, d] each
};

class Fisher {
 public:
  Fisher(Evaluator::Impl& e, const Ablation& what, ResultTable& table)
      : e_(e), what_(what), table_(table), scores_(e, kDraws, false) {}

  void run() {
    for (size_t b = 0; b < e_.batches.size(); ++b) above_.push_back(scores_.behind_last_block(b));
    for (int64_t l = e_.spec.depth(); l-- > 0;) {
      const Weights weights = e_.block_weights(l);
      Layer layer(e_.spec.width);
      for (size_t b = 0; b < e_.batches.size(); ++b) down(l, b, weights, layer);
      if (what_.layers[static_cast<size_t>(l)]) file(l, layer);
      if (what_.progress) what_.progress(e_.spec.depth() - l, e_.spec.depth(), "the output's metric");
    }
  }

 private:
  const BlockSpec& block(int64_t l) const { return e_.spec.blocks[static_cast<size_t>(l)]; }

  /// Once forward through the block, and once back for each draw.
  void down(int64_t l, size_t b, const Weights& weights, Layer& layer) {
    const at::AutoGradMode on(true);
    const BlockPlan plan(block(l), e_.spec.width);
    const BranchSpec* attention = block(l).attention_branch();
    const int behind = attention == nullptr ? -1 : static_cast<int>(attention - block(l).branches.data());
    const Tensor x = e_.kept[static_cast<size_t>(l)][b].x.detach().requires_grad_();
    BlockObserver nobody;
    BlockContext context{plan, weights, e_.batches[b], nobody};
    context.differentiated = true;
    BlockState state = block_start(x);
    Tensor read = x;  // in front of the MLP, as `use` has it
    for (const Step& step : plan.steps) {
      run_step(step, context, state, true);
      if (!block(l).parallel && step.kind == Step::Kind::join && step.branch == behind) read = state.stream;
    }
    e_.flops += e_.block_cost(block(l), e_.batches[b]) * (1 + 2 * kDraws);
    std::vector<Tensor> rows;
    const Batch& batch = e_.batches[b];
    for (size_t s = 0; s < batch.samples.size(); ++s) {
      const std::vector<int64_t> some = content_rows(batch, s);
      rows.push_back(at::tensor(some, at::kLong).to(x.device()));
      layer.add_tokens(read.detach().index_select(0, rows.back()));
    }
    const Tensor all = at::cat(rows);
    std::vector<Tensor> inputs{x};
    if (!read.is_same(x)) inputs.push_back(read);
    for (size_t k = 0; k < kDraws; ++k) {
      const std::vector<Tensor> g =
          torch::autograd::grad({state.stream}, inputs, {above_[b][k]}, k + 1 < kDraws, false, true);
      above_[b][k] = g.front().detach();
      if (g.back().defined()) layer.add_gradient(g.back().detach().index_select(0, all));
    }
  }

  void file(int64_t l, const Layer& layer) {
    const c10::NoGradGuard no_grad;
    const auto [value, error] = layer.spread(e_.spec.causal());
    const std::string site =
        fmt::format("blocks.{}.{}", l, block(l).parallel ? "hook_resid_pre" : "hook_resid_mid");
    table_.rows.push_back({"full", site, static_cast<int32_t>(l), -1, "spread_fisher", value, error,
                           layer.samples(), static_cast<int32_t>(l), "content"});
  }

  Evaluator::Impl& e_;
  const Ablation& what_;
  ResultTable& table_;
  OutputScores scores_;
  std::vector<std::vector<Tensor>> above_;  // by batch, by draw
};

}  // namespace

void measure_fisher(const Ablation& what, uint64_t seed, ResultTable& table) {
  const Questions every_token{LossKind::none, what.samples, {}};
  Evaluator evaluator({.source = what.source,
                       .questions = every_token,
                       .seed = seed,
                       .device = what.device,
                       .parts = false,
                       .progress = what.progress});
  Fisher(evaluator.impl(), what, table).run();
  table.rows.push_back({"full", output_site(evaluator.spec()), -1, -1, "fisher_passes", evaluator.passes(),
                        kNone, evaluator.samples(), static_cast<int32_t>(evaluator.spec().depth()), "all"});
}

}  // namespace rankscope
