#include "scan/lengths.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/stats.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/head_means.h"
#include "pass/pass.h"
#include "pass/variants.h"
#include "verdict/sink_key.h"

namespace rankscope {
namespace {

using HeadOf = std::pair<int64_t, int64_t>;  // layer, head

/// The first half of a text; a special token at its end stays there.
Sample half(const Sample& s) {
  Sample out = s;
  const size_t n = s.ids.size() / 2;
  const auto cut = [&](auto& list) {
    if (list.empty()) return;
    const auto last = list.back();
    list.resize(n);
    if (!s.special.empty() && s.special.back() != 0) list.back() = last;
  };
  cut(out.ids), cut(out.types), cut(out.special);
  if (!out.positions.empty()) out.positions.resize(n);
  return out;
}

class Lengths {
 public:
  Lengths(const Ablation& a, const ScanRequest& request, ResultTable& table, std::vector<std::string>& notes)
      : a_(a), request_(request), table_(table), notes_(notes) {}

  void halved(std::vector<Sample> samples) {
    struct Points {
      std::vector<double> log_length, margin;
    };
    std::map<HeadOf, std::map<int64_t, Points>> points;  // by sample
    std::map<HeadOf, Key> keys;
    const auto take = [&](const ResultTable& from) {
      for (const SampleRow& r : from.samples) {
        if (r.variant != "full" || r.metric != "sink_margin" || r.head < 0 || !std::isfinite(r.value))
          continue;
        const HeadOf head{r.layer, r.head};
        const auto [key, fresh] = keys.try_emplace(head);
        if (fresh) key->second = key_of(r.layer, r.head);
        const Sample& s = samples[static_cast<size_t>(r.sample)];
        if (times_ == 0 || left(key->second, s)) {
          Points& of = points[head][r.sample];
          of.log_length.push_back(std::log(static_cast<double>(s.ids.size())));
          of.margin.push_back(r.value);
        }
      }
    };
    take(table_);
    const auto least = static_cast<size_t>(std::max(a_.thresholds["few_tokens"], 1.0));
    const auto long_enough = [&](const Sample& s) { return s.ids.size() / 2 >= least; };
    while (std::ranges::all_of(samples, long_enough)) {
      for (Sample& s : samples) s = half(s);
      PassPlan plan;
      plan.variants = {{"full", spec(), 0, 0}};
      plan.sources = {&a_.source};
      plan.inputs = {make_batches(samples, spec(), request_.batch_size)};
      plan.lenses = choose_lenses({"margins"});
      plan.layers = a_.layers;
      plan.seed = request_.seed;
      plan.device = a_.device;
      ResultTable scratch;
      run_pass(plan, scratch, notes_, a_.progress);
      ++times_;
      take(scratch);
    }
    if (times_ == 0) {
      notes_.push_back(fmt::format(
          "--off length: half of the shortest sample has fewer than {} tokens, so nothing was halved",
          least));
      return;
    }
    bool any = false;
    for (const auto& [head, by_sample] : points) {
      std::vector<double> slopes;
      for (const auto& [sample, of] : by_sample)
        if (const double k = least_squares_slope(of.log_length, of.margin); std::isfinite(k))
          slopes.push_back(k);
      file(head, "attn.hook_pattern", "sink_slope_lengths", slopes);
      any = any || !slopes.empty();
    }
    if (!any)
      notes_.push_back(
          "--off length: no head has the same strongest key in most samples, so none has a slope over "
          "lengths");
  }

  void drained() {
    std::map<int64_t, std::vector<int64_t>> sinks;  // by layer
    for (const Row& r : table_.rows)
      if (r.variant == "full" && r.metric == "sink_margin" && r.head >= 0 &&
          r.value >= a_.thresholds["sink_margin"])
        sinks[r.layer].push_back(r.head);
    if (sinks.empty()) return;
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> x;
    {
      const Weights weights = a_.source.load("embed");
      for (const Batch& b : a_.batches) x.push_back(embed(b, spec(), weights, a_.source));
    }
    for (int64_t l = 0; l <= sinks.rbegin()->first; ++l) {
      const BlockSpec& block = spec().blocks[static_cast<size_t>(l)];
      const Weights weights = a_.source.load(fmt::format("blocks.{}", block.weights));
      Values values;
      std::map<int64_t, std::vector<double>> found;  // by head
      for (size_t b = 0; b < a_.batches.size(); ++b) {
        x[b] = run_block(x[b], block, weights, a_.batches[b], values);
        const auto here = sinks.find(l);
        if (here == sinks.end() || !values.v.defined()) continue;
        look(values.v, block, weights, a_.batches[b], l, here->second, found);
      }
      for (const auto& [head, shares] : found) file({l, head}, "attn.hook_v", "sink_drained", shares);
    }
  }

 private:
  struct Values : BlockObserver {
    bool wants(std::string_view site) const override { return site == "attn.hook_v"; }
    void see(std::string_view site, const at::Tensor& t, const TilePlace&) override {
      if (site == "attn.hook_v") v = t;
    }
    at::Tensor v;  // [N, KV, d_v]
  };

  const ModelSpec& spec() const { return a_.source.spec(); }

  /// The key that a head has in most samples; `kind` is empty where it has another one in each.
  struct Key {
    std::string_view kind;  // of sink_key()
    int64_t position = 0, token = 0;
  };

  Key key_of(int64_t layer, int64_t head) const {
    const auto value = [&](std::string_view metric) {
      for (const Row& r : table_.rows)
        if (r.variant == "full" && r.metric == metric && r.layer == layer && r.head == head) return r.value;
      return 0.0;
    };
    SinkShares shares{value("sink_first"), value("sink_last"), value("sink_special"),
                      value("sink_key_position_share"), value("sink_key_token_share")};
    // Which special token it is the shares of positions and tokens say.
    if (sink_key(shares) == "special") shares.special = 0;
    return {sink_key(shares), static_cast<int64_t>(value("sink_key_position")),
            static_cast<int64_t>(value("sink_key_token"))};
  }

  /// Whether a half still has it: a key that was cut away says nothing of how it fares.
  static bool left(const Key& key, const Sample& s) {
    const bool ends = !s.special.empty() && s.special.back() != 0;  // as the whole text does
    if (key.kind == "first") return true;
    if (key.kind == "last") return ends;
    if (key.kind == "position") return key.position + (ends ? 1 : 0) < static_cast<int64_t>(s.ids.size());
    return key.kind == "token" && std::ranges::find(s.ids, key.token) != s.ids.end();
  }

  /// Where it stands in a sample.
  static std::optional<int64_t> place_of(const Key& key, const Batch& batch, int64_t s) {
    const int64_t first = batch.offsets[static_cast<size_t>(s)], n = batch.length(s);
    if (key.kind == "first") return first;
    if (key.kind == "last") return first + n - 1;
    if (key.kind == "position") return key.position < n ? std::optional(first + key.position) : std::nullopt;
    if (key.kind != "token" || batch.ids.empty()) return {};
    const auto begin = batch.ids.begin() + first, end = begin + n;
    const auto found = std::find(begin, end, key.token);
    return found == end ? std::nullopt : std::optional(first + (found - begin));
  }

  void look(const at::Tensor& v, const BlockSpec& block, const Weights& weights, const Batch& batch,
            int64_t layer, const std::vector<int64_t>& heads,
            std::map<int64_t, std::vector<double>>& found) const {
    const BranchSpec& branch = *block.attention_branch();
    const AttentionSpec& a = *branch.attention();
    if (!a.value_map || v.numel() % (v.size(0) * a.d_v) != 0) return;
    const at::Tensor grams = output_grams(weights, a).cpu(), bare = carried_by_biases(branch, weights);
    const at::Tensor values = v.reshape({v.size(0), -1, a.d_v}).to(at::kCPU, at::kDouble);
    for (const int64_t h : heads) {
      const at::Tensor own = values.select(1, h / (a.heads / values.size(1))) - bare[h];
      const at::Tensor sizes = (own.matmul(grams[h]) * own).sum(1).clamp_min(0).sqrt();  // [N]
      const Key key_of_head = key_of(layer, h);
      for (int64_t s = 0; s < batch.count(); ++s) {
        const std::optional<int64_t> key = place_of(key_of_head, batch, s);
        const at::Tensor of_sample = sizes.narrow(0, batch.offsets[static_cast<size_t>(s)], batch.length(s));
        const double usual = of_sample.median().item<double>();
        if (key && usual > 0) found[h].push_back(sizes[*key].item<double>() / usual);
      }
    }
  }

  void file(const HeadOf& head, const char* site, const char* metric, const std::vector<double>& samples) {
    if (samples.empty()) return;
    const Estimate e = arithmetic_mean(samples);
    table_.rows.push_back({"full", fmt::format("blocks.{}.{}", head.first, site),
                           static_cast<int32_t>(head.first), static_cast<int32_t>(head.second), metric,
                           e.value, e.stderr_, static_cast<int64_t>(samples.size()),
                           static_cast<int32_t>(head.first), "all"});
  }

  const Ablation& a_;
  const ScanRequest& request_;
  ResultTable& table_;
  std::vector<std::string>& notes_;
  int times_ = 0;
};

}  // namespace

void measure_lengths(const Ablation& what, const std::vector<Sample>& samples, const ScanRequest& request,
                     ResultTable& table, std::vector<std::string>& notes) {
  if (std::none_of(table.rows.begin(), table.rows.end(),
                   [](const Row& r) { return r.metric == "sink_margin"; })) {
    const auto& lenses = request.lenses;
    const bool looked = lenses.empty() || std::find(lenses.begin(), lenses.end(), "margins") != lenses.end();
    notes.emplace_back(looked
                           ? "--off length: no sink_margin was measured, as in no pattern a quarter of the "
                             "queries that have a choice (two at least) see one and the same key"
                           : "--off length: no sink_margin was measured; leave --lens out, or name margins");
    return;
  }
  Lengths lengths(what, request, table, notes);
  const bool words =
      std::all_of(samples.begin(), samples.end(), [](const Sample& s) { return !s.ids.empty(); });
  if (!what.source.spec().causal() && words) lengths.halved(samples);
  lengths.drained();
}

}  // namespace rankscope
