#include "scan/use.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/stats.h"
#include "lenses/support/median.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "pass/mean_output.h"
#include "pass/output.h"
#include "pass/pass.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

constexpr size_t kAtOnce = 16;  // layers: each holds activations of its own

/// The content tokens of every sample replaced by their mean, causal ones by that of those up to them. A
/// massive one would be all there is of the mean.
at::Tensor with_mean_tokens(const at::Tensor& x, const Batch& batch, bool causal) {
  at::Tensor out = x.clone();
  const at::Tensor norms = x.to(at::kDouble).norm(2, 1).cpu();
  for (int64_t s = 0; s < batch.count(); ++s) {
    const int64_t first = batch.offsets[static_cast<size_t>(s)], count = batch.length(s);
    const std::vector<uint8_t> massive =
        above_median({norms.data_ptr<double>() + first, static_cast<size_t>(count)});
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < count; ++i)
      if (batch.content[static_cast<size_t>(first + i)] && !massive[static_cast<size_t>(i)])
        rows.push_back(first + i);
    if (rows.empty()) continue;
    const at::Tensor at = at::tensor(rows, at::kLong).to(x.device());
    const at::Tensor tokens = x.index_select(0, at).to(at::kDouble);
    const at::Tensor seen = at::arange(1, tokens.size(0) + 1, tokens.options()).unsqueeze(1);
    const at::Tensor mean = causal ? tokens.cumsum(0) / seen : tokens.mean(0, true).expand_as(tokens);
    out.index_copy_(0, at, mean.to(x.scalar_type()));
  }
  return out;
}

/// A network that lost what tells its tokens apart in one layer, and where that was.
struct Replaced {
  int64_t layer;
  std::string site;
  std::vector<at::Tensor> x;  // one a batch
};

class Use {
 public:
  Use(const Ablation& a, ResultTable& table, std::vector<std::string>& notes)
      : a_(a), table_(table), notes_(notes) {
    plan_.variants = {{"full", spec(), 0, 0}};
    plan_.sources = {&a_.source};
    plan_.inputs = {a_.batches};
    plan_.device = a_.device;
  }

  void run() {
    const c10::NoGradGuard no_grad;
    std::vector<int64_t> layers;
    for (int64_t l = 0; l < spec().depth(); ++l)
      if (a_.layers[static_cast<size_t>(l)]) layers.push_back(l);
    for (size_t first = 0; first < layers.size(); first += kAtOnce)
      sweep({layers.begin() + static_cast<std::ptrdiff_t>(first),
             layers.begin() + static_cast<std::ptrdiff_t>(std::min(layers.size(), first + kAtOnce))});
  }

 private:
  const ModelSpec& spec() const { return a_.source.spec(); }

  /// Once through the network, with every network that lost its tokens in one of these layers behind the full
  /// one.
  void sweep(const std::vector<int64_t>& layers) {
    std::vector<at::Tensor> x;
    {
      const Weights weights = a_.source.load("embed");
      for (const Batch& b : a_.batches) x.push_back(embed(b, spec(), weights, a_.source));
    }
    std::vector<Replaced> all;
    BlockObserver nobody;
    for (int64_t l = 0; l < spec().depth(); ++l) {
      const BlockSpec& block = spec().blocks[static_cast<size_t>(l)];
      const Weights weights = a_.source.load(fmt::format("blocks.{}", block.weights));
      const BlockPlan plan(block, spec().width);
      const bool here = std::find(layers.begin(), layers.end(), l) != layers.end();
      for (Replaced& r : all)
        for (size_t b = 0; b < a_.batches.size(); ++b)
          r.x[b] = run_block(r.x[b], {plan, weights, a_.batches[b], nobody});
      if (here)
        all.push_back(
            {l, fmt::format("blocks.{}.{}", l, block.parallel ? "hook_resid_pre" : "hook_resid_mid"), {}});
      for (size_t b = 0; b < a_.batches.size(); ++b) {
        const BlockContext context{plan, weights, a_.batches[b], nobody};
        x[b] = advance(x[b], block, context, here ? &all.back().x : nullptr);
      }
      if (a_.progress) a_.progress(l + 1, spec().depth(), fmt::format("use, block {}", l + 1));
    }
    compare(x, all);
  }

  /// The full network's block; its tokens are replaced behind attention, or before a block whose parts read
  /// side by side.
  at::Tensor advance(const at::Tensor& x, const BlockSpec& block, const BlockContext& c,
                     std::vector<at::Tensor>* replaced) {
    const BranchSpec* attention = block.attention_branch();
    const auto behind = attention == nullptr ? -1 : static_cast<int>(attention - block.branches.data());
    if (replaced != nullptr && (block.parallel || behind < 0))
      replaced->push_back(run_block(with_mean_tokens(x, c.batch, spec().causal()), c));
    BlockState full = block_start(x), other;
    bool split = false;
    for (const Step& step : c.plan.steps) {
      run_step(step, c, full);
      if (split) run_step(step, c, other);
      if (replaced == nullptr || block.parallel || step.kind != Step::Kind::join || step.branch != behind)
        continue;
      other = block_start(with_mean_tokens(full.stream, c.batch, spec().causal()));
      split = true;
    }
    if (split) replaced->push_back(other.stream);
    return full.stream;
  }

  FinalState end_of(std::vector<at::Tensor> x, size_t variant) {
    const Weights weights = spec().final_norm.there() ? a_.source.load("ln_final") : Weights();
    FinalState out;
    out.variants = {variant};
    for (at::Tensor& t : x) out.x->push_back(apply_norm(t, spec().final_norm, weights, ""));
    return out;
  }

  void compare(const std::vector<at::Tensor>& x, std::vector<Replaced>& all) {
    const FinalState full = end_of(x, 0);
    std::vector<FinalState> states;
    std::vector<const FinalState*> others;
    plan_.variants.resize(1);
    for (Replaced& r : all) {
      plan_.variants.push_back({fmt::format("tokens-mean:L{}", r.layer), spec(), 0, 0});
      states.push_back(end_of(std::move(r.x), plan_.variants.size() - 1));
    }
    for (const FinalState& s : states) others.push_back(&s);
    ResultTable scratch;
    compare_outputs(full, plan_, others, plan_, scratch, notes_);
    const std::map<int64_t, double> reference = divergence_from_mean(full, plan_);
    std::map<std::string, std::map<int64_t, double>> moved;
    const bool squares = output_metric(spec()) != "output_kl";  // a divergence is quadratic, an error is not
    if (!std::exchange(ranged_, true)) file_range(reference, squares);
    for (const SampleRow& r : scratch.samples)
      moved[r.variant.str()][r.sample] = squares ? r.value * r.value : r.value;
    for (size_t i = 0; i < all.size(); ++i) file(all[i], moved[plan_.variants[i + 1].name], reference);
  }

  /// Ratio of the two sums over samples, with the error of leaving out each sample in turn.
  void file(const Replaced& r, const std::map<int64_t, double>& moved,
            const std::map<int64_t, double>& reference) {
    double up = 0, down = 0, n = 0;
    for (const auto& [sample, value] : moved) up += value, down += reference.at(sample), ++n;
    if (!(down > 0)) return;
    double squares = 0;
    for (const auto& [sample, value] : moved) {
      const double without = (up - value) / (down - reference.at(sample));
      squares += (without - up / down) * (without - up / down);
    }
    const double error = n > 1 ? std::sqrt(squares * (n - 1) / n) : kNone;
    table_.rows.push_back({"full", r.site, static_cast<int32_t>(r.layer), -1, "use", up / down, error,
                           static_cast<int64_t>(n), static_cast<int32_t>(r.layer), "content"});
  }

  /// What there is to lose at all.
  void file_range(const std::map<int64_t, double>& reference, bool squares) {
    const std::string site = output_site(spec());
    const auto depth = static_cast<int32_t>(spec().depth());
    std::vector<double> values;
    for (const auto& [sample, value] : reference) {
      values.push_back(squares ? std::sqrt(value) : value);
      table_.samples.push_back(
          {"full", site, -1, -1, "output_range", "all", sample, values.back(), {}, depth});
    }
    const Estimate mean = arithmetic_mean(values);
    table_.rows.push_back({"full", site, -1, -1, "output_range", mean.value, mean.stderr_,
                           static_cast<int64_t>(values.size()), depth, "all"});
  }

  const Ablation& a_;
  ResultTable& table_;
  std::vector<std::string>& notes_;
  PassPlan plan_;
  bool ranged_ = false;
};

}  // namespace

void measure_use(const Ablation& what, ResultTable& table, std::vector<std::string>& notes) {
  Use(what, table, notes).run();
}

}  // namespace rankscope
