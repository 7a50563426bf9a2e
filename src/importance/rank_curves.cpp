#include "importance/rank_curves.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/stats.h"
#include "importance/kept.h"
#include "parts/parameters.h"
#include "pass/output.h"
#include "pass/readout.h"
#include "spec/edit.h"

namespace rankscope {
namespace {

using at::Tensor;

// What each head of a layer writes along the gradients, cut and whole: half the mean square of the difference
// of their sums over a sample is the estimate of its cost.
class HeadCosts {
 public:
  HeadCosts(Evaluator::Impl& e, const WriteGradients& gradients, int64_t layer)
      : e_(e), gradients_(gradients), layer_(layer), weights_(e.block_weights(layer)) {}

  bool there() const { return !gradients_.by_layer[static_cast<size_t>(layer_)].front().empty(); }

  /// By head, by sample.
  std::vector<std::vector<double>> of(const std::string& map, int64_t rank) {
    const c10::NoGradGuard no_grad;
    const BlockSpec& block = e_.spec.blocks[static_cast<size_t>(layer_)];
    BlockEdit edit = cut_to(e_.spec, block, map, rank);
    const Weights changed = edited_weights(edit, weights_);
    const AttentionSpec& a = block.attention();
    std::vector<std::vector<double>> out(static_cast<size_t>(a.heads),
                                         std::vector<double>(e_.tokens_asked.size(), 0.0));
    for (size_t b = 0; b < e_.batches.size(); ++b) {
      const Tensor z = carried(edit.spec, changed, b);
      for (const Tensor& g : gradients_.by_layer[static_cast<size_t>(layer_)][b]) {
        const Tensor whole = along(g, weights_, e_.kept[static_cast<size_t>(layer_)][b].z);
        Tensor now = along(g, changed, z);
        if (map == "ov") now = now + along_biases(g, a);
        add(b, (now - whole).to(at::kDouble).cpu(), out);
      }
    }
    return out;
  }

 private:
  class SeenHeads : public BlockObserver {
   public:
    bool wants(std::string_view site) const override { return site == "attn.hook_z"; }
    void see(std::string_view site, const Tensor& seen, const TilePlace&) override {
      if (site == "attn.hook_z") z = seen;
    }
    Tensor z;
  };

  // What the heads of the cut layer carry, given what the full network is given there.
  Tensor carried(const BlockSpec& block, const Weights& weights, size_t b) {
    const BlockPlan plan(block, e_.spec.width);
    const Resume at = resume_points(plan, block);
    SeenHeads heads;
    const BlockContext context{plan, weights, e_.batches[b], heads};
    BlockState state = block_start(e_.kept[static_cast<size_t>(layer_)][b].x);
    for (size_t i = 0; i < at.attended; ++i) run_step(plan.steps[i], context, state, true);
    BlockSpec ran = block;
    ran.branches.resize(static_cast<size_t>(plan.steps[at.attended].branch) + 1);
    e_.flops += e_.block_cost(ran, e_.batches[b]);
    return heads.z;
  }

  static Tensor along(const Tensor& g, const Weights& weights, const Tensor& z) {  // [N, H]
    return (g.matmul(weights.get("attn.W_O")).view(z.sizes()) * z).sum(2);
  }

  // The value bias, which a cut of OV moves behind the heads: what each of them still writes through it.
  Tensor along_biases(const Tensor& g, const AttentionSpec& a) const {
    const Tensor& W_O = weights_.get("attn.W_O");
    const Tensor& b_V = weights_.get_or_none("attn.b_V");
    if (!b_V.defined()) return at::zeros({g.size(0), a.heads}, g.options());
    const Tensor by_head = b_V.view({a.kv_heads, 1, a.d_v})
                               .expand({a.kv_heads, a.heads / a.kv_heads, a.d_v})
                               .reshape({a.heads, a.d_v});
    return (g.matmul(W_O).view({g.size(0), a.heads, a.d_v}) * by_head).sum(2);
  }

  void add(size_t b, const Tensor& difference, std::vector<std::vector<double>>& out) const {
    const Batch& batch = e_.batches[b];
    for (size_t s = 0; s < batch.samples.size(); ++s) {
      const auto rows = static_cast<double>(e_.asked[b].offsets[s + 1] - e_.asked[b].offsets[s]);
      if (rows == 0) continue;
      const Tensor sums =
          difference.narrow(0, batch.offsets[s], batch.length(static_cast<int64_t>(s))).sum(0);
      for (size_t h = 0; h < out.size(); ++h)
        out[h][static_cast<size_t>(batch.samples[s])] +=
            0.5 * std::pow(sums.data_ptr<double>()[h], 2) / rows / kDraws;
    }
  }

  Evaluator::Impl& e_;
  const WriteGradients& gradients_;
  int64_t layer_;
  Weights weights_;
};

bool within(const std::vector<double>& kl, double epsilon) {
  const Estimate e = arithmetic_mean(kl);
  return e.value + 2 * (std::isfinite(e.stderr_) ? e.stderr_ : 0) < epsilon;
}

}  // namespace

RankCurve parse_curve(const std::string& words) {
  const auto bad = [&] {
    return usage_error(fmt::format("\"{}\" does not name ranks of one map", printable(words)))
        .in("--rank")
        .hint("qk=1,2,4,8, ov=1,2,4,8 or kv=4,8,16");
  };
  if (words.size() < 4 || words[2] != '=') throw bad();
  RankCurve out{words.substr(0, 2), {}};
  if (out.map != "qk" && out.map != "ov" && out.map != "kv") throw bad();
  const char* at = words.data() + 3;
  const char* const end = words.data() + words.size();
  for (;;) {
    int64_t rank = 0;
    const auto [rest, error] = std::from_chars(at, end, rank);
    if (error != std::errc{} || rank < 1) throw bad();
    out.ranks.push_back(rank);
    if (rest == end) break;
    if (*rest != ',') throw bad();
    at = rest + 1;
  }
  std::sort(out.ranks.begin(), out.ranks.end());
  out.ranks.erase(std::unique(out.ranks.begin(), out.ranks.end()), out.ranks.end());
  return out;
}

int64_t full_rank(const ModelSpec& spec, const BlockSpec& block, const std::string& map) {
  const BranchSpec* b = block.attention_branch();
  if (b == nullptr) return 0;
  const AttentionSpec& a = *b->attention();
  return highest_rank(map == "qk" ? a.d_qk : map == "ov" ? a.d_v : a.d_qk + a.d_v, spec);
}

BlockEdit cut_to(const ModelSpec& spec, const BlockSpec& block, const std::string& map, int64_t rank) {
  BlockEdit edit{block, 0};
  if (rank >= full_rank(spec, block, map)) return edit;
  if (map == "qk") edit.spec.attention().truncate_qk = rank;
  if (map == "ov") edit.spec.attention().truncate_ov = rank;
  if (map == "kv") edit.kv_rank = rank;
  return edit;
}

void add_rank_curve(const RankCurve& curve, Evaluator& evaluator, const WriteGradients* gradients,
                    double epsilon, Filing& filing) {
  const ModelSpec& spec = evaluator.spec();
  const std::string stem = "rank_" + curve.map, everywhere = output_site(spec);
  const auto site = [](int64_t l) { return fmt::format("blocks.{}.attn.hook_result", l); };
  const double before = evaluator.passes();
  std::vector<Variation> variations;
  double bound = 0, all = 0;
  std::vector<double> cost;
  for (const BlockSpec& b : spec.blocks) cost.push_back(block_flops(spec, b, 1)), all += cost.back();
  for (const int64_t rank : curve.ranks)
    for (int64_t only = -1; only < spec.depth(); ++only) {
      Variation v;
      for (int64_t l = 0; l < spec.depth(); ++l)
        if ((only < 0 || only == l) && rank < full_rank(spec, spec.blocks[static_cast<size_t>(l)], curve.map))
          v.edits[l] = cut_to(spec, spec.blocks[static_cast<size_t>(l)], curve.map, rank);
      v.first = v.edits.empty() ? spec.depth() - 1 : v.edits.begin()->first;
      bound += readout_flops(spec) / all;
      for (size_t l = static_cast<size_t>(std::max<int64_t>(0, only)); l < cost.size(); ++l)
        bound += cost[l] / all;
      variations.push_back(std::move(v));
    }
  const std::vector<Judged> judged = evaluator.run(variations);
  size_t i = 0;
  std::vector<int64_t> enough(static_cast<size_t>(spec.depth()) + 1, 0);  // all layers, then each
  for (const int64_t rank : curve.ranks)
    for (int64_t only = -1; only < spec.depth(); ++only, ++i) {
      filing.judged(stem, {only < 0 ? everywhere : site(only), only, -1, rank}, judged[i]);
      int64_t& least = enough[static_cast<size_t>(only + 1)];
      if (least == 0 && within(judged[i].kl, epsilon) && !filing.loses_text(judged[i], epsilon)) least = rank;
    }
  for (int64_t only = -1; only < spec.depth(); ++only)
    if (const int64_t least = enough[static_cast<size_t>(only + 1)]; least > 0)
      filing.number(stem + "_suffices", {only < 0 ? everywhere : site(only), only, -1, -1},
                    static_cast<double>(least));
  filing.number(stem + "_passes", {everywhere, -1, -1, -1}, evaluator.passes() - before);
  filing.number(stem + "_passes_bound", {everywhere, -1, -1, -1}, bound);
  if (gradients == nullptr) return;
  for (int64_t l = 0; l < spec.depth(); ++l) {
    HeadCosts costs(evaluator.impl(), *gradients, l);
    if (!costs.there()) continue;
    const int64_t heads = spec.blocks[static_cast<size_t>(l)].attention().heads;
    std::vector<int64_t> least(static_cast<size_t>(heads), 0);
    for (const int64_t rank : curve.ranks) {
      const std::vector<std::vector<double>> by_head = costs.of(curve.map, rank);
      for (int64_t h = 0; h < heads; ++h) {
        const std::vector<double>& of = by_head[static_cast<size_t>(h)];
        filing.samples(stem + "_estimate_kl", {site(l), l, h, rank}, of, false);
        if (least[static_cast<size_t>(h)] == 0 && within(of, epsilon)) least[static_cast<size_t>(h)] = rank;
      }
    }
    for (int64_t h = 0; h < heads; ++h)
      if (least[static_cast<size_t>(h)] > 0)
        filing.number(stem + "_suffices_estimate", {site(l), l, h, -1},
                      static_cast<double>(least[static_cast<size_t>(h)]));
  }
}

}  // namespace rankscope
