#include "importance/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "base/rank_correlation.h"
#include "base/some_places.h"
#include "base/stats.h"
#include "importance/cost_note.h"
#include "importance/estimates.h"
#include "importance/evaluator.h"
#include "importance/filing.h"
#include "importance/rank_curves.h"
#include "importance/savings.h"
#include "importance/stand_ins.h"
#include "parts/parameters.h"
#include "pass/output.h"
#include "pass/readout.h"
#include "pass/variants.h"

namespace rankscope {
namespace {

constexpr size_t kSampledHeads = 16;  // exact ones beside estimates alone
constexpr int kPruningPoints = 10;
constexpr size_t kMostPairs = 16;     // measured together, of the heads that are free alone
constexpr uint32_t kSampleHeads = 6;  // the stream of random numbers

template <class T>
std::vector<T> picked(const std::vector<T>& from, const std::vector<int64_t>& which) {
  std::vector<T> out;
  for (const int64_t i : which) out.push_back(from[static_cast<size_t>(i)]);
  return out;
}

std::string site_of(const Unit& u) {
  switch (u.kind) {
    case UnitKind::head:
      return fmt::format("blocks.{}.attn.hook_result", u.layer);
    case UnitKind::layer:
      return fmt::format("blocks.{}.hook_resid_post", u.layer);
    case UnitKind::mlp:
    case UnitKind::expert:
      return fmt::format("blocks.{}.hook_mlp_out", u.layer);
  }
  return "";
}

class Importance {
 public:
  Importance(const ImportanceJob& job, ResultTable& table, std::vector<std::string>& notes)
      : job_(job),
        table_(table),
        notes_(notes),
        chosen_(some_places(static_cast<int64_t>(job.samples.size()), job.request.ablate_samples)),
        questions_(asked_of(job, chosen_, notes)),
        evaluator_({.source = job.source,
                    .questions = questions_,
                    .batch_size = job.request.batch_size,
                    .seed = job.request.seed,
                    .device = job.request.device,
                    .parts = true,
                    .group_bytes = 0,
                    .progress = job.progress,
                    .numbers = chosen_}),
        filing_(evaluator_, chosen_, table),
        everywhere_{output_site(job.source.spec()), -1, -1, -1} {}

  void run() {
    const ScanRequest& r = job_.request;
    if (!r.ablate.empty()) kinds_ = parse_kinds(r.ablate);
    const std::vector<Replacement> replacements = parse_replacements(r.ablate_by);
    for (const UnitKind kind : kinds_.exact)
      for (const Replacement replacement : replacements) exact(units_of(spec(), kind), kind, replacement);
    std::vector<RankCurve> curves;
    for (const std::string& words : r.rank)
      if (is_rank_curve(words)) curves.push_back(asked_for(words));
    const bool with_head = spec().output.kind != HeadKind::none;
    WriteGradients gradients;
    if ((kinds_.estimates || !curves.empty()) && with_head) estimates(kinds_, curves, gradients);
    // In their order of importance, for which every one of them was taken out.
    if (kinds_.heads() && zero_heads_.size() == units_of(spec(), UnitKind::head).size()) {
      prune();
      if (with_head) pairs();
    }
    for (const RankCurve& curve : curves)
      add_rank_curve(curve, evaluator_, with_head ? &gradients : nullptr, epsilon(), filing_);
  }

 private:
  static Questions asked_of(const ImportanceJob& job, std::vector<int64_t>& chosen,
                            std::vector<std::string>& notes) {
    Questions q = questions_for(job.source.spec(), picked(job.samples, chosen), job.mask, job.request.seed);
    note_unasked(keep_asked(q, chosen), notes);
    return q;
  }
  const ModelSpec& spec() const { return evaluator_.spec(); }
  double epsilon() const {
    return job_.request.thresholds[spec().output.kind != HeadKind::none ? "epsilon" : "epsilon_error"];
  }

  // Ranks above that of every map are the whole map's.
  RankCurve asked_for(const std::string& words) {
    RankCurve curve = parse_curve(words);
    int64_t whole = 0;
    for (const BlockSpec& b : spec().blocks) whole = std::max(whole, full_rank(spec(), b, curve.map));
    if (whole == 0 || curve.ranks.back() <= whole) return curve;
    notes_.push_back(fmt::format(
        "the {} maps of this network have rank {} at most: larger ones are taken for it", curve.map, whole));
    for (int64_t& rank : curve.ranks) rank = std::min(rank, whole);
    curve.ranks.erase(std::unique(curve.ranks.begin(), curve.ranks.end()), curve.ranks.end());
    return curve;
  }

  struct Known {
    Unit unit;
    Judged judged;
    double kl, loss;  // means
  };

  void exact(std::vector<Unit> units, UnitKind kind, Replacement replacement) {
    const std::string stem = fmt::format("{}_{}", to_string(kind), to_string(replacement));
    const bool by_name = !kinds_.all;
    if (units.empty()) {
      if (by_name)
        notes_.push_back(fmt::format("there are no {}s in this network to take out", to_string(kind)));
      return;
    }
    if (replacement != Replacement::zero) {
      if (kind == UnitKind::layer || kind == UnitKind::expert) {
        if (by_name)
          notes_.push_back(
              fmt::format("there is no {}: nothing is put in the place of {}s", stem, to_string(kind)));
        return;
      }
      const size_t left_out = std::erase_if(
          units, [&](const Unit& u) { return kind == UnitKind::head && !evaluator_.writes_heads(u.layer); });
      if (left_out > 0)
        notes_.push_back(fmt::format(
            "{} heads have no {}: something stands between them and their output map", left_out, stem));
    }
    if (units.empty()) return;
    const double before = evaluator_.passes() - std::exchange(full_passes_, 0.0);  // with the first of them
    std::vector<Variation> variations;
    for (const Unit& u : units) variations.push_back({u.layer, u, replacement, {}});
    const std::vector<Judged> judged = evaluator_.run(variations);
    for (size_t i = 0; i < units.size(); ++i) {
      filing_.judged(stem, {site_of(units[i]), units[i].layer, units[i].index, -1}, judged[i]);
      if (kind == UnitKind::head && replacement == Replacement::zero)
        zero_heads_.push_back(
            {units[i], judged[i], arithmetic_mean(judged[i].kl).value, filing_.mean_loss_gained(judged[i])});
    }
    filing_.number(stem + "_passes", everywhere_, evaluator_.passes() - before);
    filing_.number(stem + "_passes_bound", everywhere_, evaluator_.bound(units, replacement));
  }

  void estimates(const AblationKinds& kinds, const std::vector<RankCurve>& curves,
                 WriteGradients& gradients) {
    const double before = evaluator_.passes();
    estimates_ = estimate_heads(evaluator_, curves.empty() ? nullptr : &gradients);
    const double passes = evaluator_.passes() - before;
    if (!kinds.estimates) return;
    filing_.number("estimate_passes", everywhere_, passes);
    for (const Unit& u : units_of(spec(), UnitKind::head)) {
      const auto l = static_cast<size_t>(u.layer), h = static_cast<size_t>(u.index);
      if (estimates_.kl[l].empty()) continue;
      const RowPlace place{site_of(u), u.layer, u.index, -1};
      filing_.samples("head_estimate_kl", place, estimates_.kl[l][h], false);
      if (!estimates_.loss[l].empty())
        filing_.samples("head_estimate_loss", place, estimates_.loss[l][h], true);
    }
    if (zero_heads_.empty()) exact(sampled_heads(), UnitKind::head, Replacement::zero);
    correlate();
  }

  std::vector<Unit> sampled_heads() const {
    std::vector<Unit> all = units_of(spec(), UnitKind::head);
    const Philox random{job_.request.seed, kSampleHeads, 0};
    const size_t wanted = std::min(kSampledHeads, all.size());
    for (size_t i = 0; i < wanted; ++i) std::swap(all[i], all[i + random.below(all.size() - i, i)]);
    all.resize(wanted);
    return all;
  }

  void correlate() {
    std::vector<double> kl, loss, exact_kl, exact_loss;
    for (const Known& k : zero_heads_) {
      const auto l = static_cast<size_t>(k.unit.layer), h = static_cast<size_t>(k.unit.index);
      if (estimates_.kl[l].empty()) continue;
      kl.push_back(arithmetic_mean(estimates_.kl[l][h]).value);
      exact_kl.push_back(k.kl);
      if (estimates_.loss[l].empty()) continue;
      loss.push_back(mean_over_tokens(estimates_.loss[l][h], evaluator_.asked()).value);
      exact_loss.push_back(k.loss);
    }
    const auto row = [&](const char* metric, const std::vector<double>& a, const std::vector<double>& b) {
      if (a.size() < 3) return;
      filing_.number(metric, everywhere_, rank_correlation(a, b));
    };
    row("estimate_kl_rank_correlation", kl, exact_kl);
    row("estimate_loss_rank_correlation", loss, exact_loss);
  }

  std::vector<size_t> by_importance() const {
    std::vector<size_t> order(zero_heads_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return zero_heads_[a].kl < zero_heads_[b].kl; });
    return order;
  }

  // Heads out together, the least important first: ten points on the way to none left.
  void prune() {
    const std::vector<size_t> order = by_importance();
    const double before = evaluator_.passes();
    std::vector<Variation> variations;
    std::vector<HeadSet> sets;
    for (int point = 1; point <= kPruningPoints; ++point) {
      const auto count =
          static_cast<size_t>(std::lround(static_cast<double>(order.size()) * point / kPruningPoints));
      if (count == 0 || (!sets.empty() && sets.back().size() == count)) continue;
      HeadSet out;
      for (size_t i = 0; i < count; ++i)
        out.insert({zero_heads_[order[i]].unit.layer, zero_heads_[order[i]].unit.index});
      variations.push_back(without(out));
      sets.push_back(std::move(out));
    }
    const std::vector<Judged> judged = evaluator_.run(variations);
    for (size_t i = 0; i < sets.size(); ++i) {
      const RowPlace place{everywhere_.site, -1, -1, static_cast<int64_t>(sets[i].size())};
      filing_.judged("prune", place, judged[i]);
      filing_.number("prune_parameters", place, static_cast<double>(parameters_saved(spec(), sets[i])));
      filing_.number("prune_cache", place, cache_saved(spec(), sets[i]));
    }
    filing_.number("prune_passes", everywhere_, evaluator_.passes() - before);
    double all = 0;
    for (const BlockSpec& b : spec().blocks) all += block_flops(spec(), b, 1);
    filing_.number("prune_passes_bound", everywhere_,
                   static_cast<double>(sets.size()) * (1 + readout_flops(spec()) / all));
  }

  Variation without(const HeadSet& out) const {
    Variation v;
    v.first = out.begin()->first;
    for (const auto& [layer, head] : out) {
      const auto edit =
          v.edits.try_emplace(layer, BlockEdit{spec().blocks[static_cast<size_t>(layer)], 0}).first;
      edit->second.spec.attention().heads_off.push_back(head);
    }
    return v;
  }

  // Heads that are free alone and not together. Which pairs are worth a run, the scores of the estimate tell:
  // to second order two heads cost E(s_A s_B) more together than one by one.
  void pairs() {
    if (estimates_.scores.empty()) return;
    std::vector<size_t> free;
    for (size_t i = 0; i < zero_heads_.size(); ++i) {
      const Estimate e = arithmetic_mean(zero_heads_[i].judged.kl);
      const auto l = static_cast<size_t>(zero_heads_[i].unit.layer);
      if (e.value + 2 * e.stderr_ < epsilon() &&  // one sample has no error
          !filing_.loses_text(zero_heads_[i].judged, epsilon()) && !estimates_.scores[l].empty())
        free.push_back(i);
    }
    const auto scores = [&](size_t i) -> const std::vector<double>& {
      const Unit& u = zero_heads_[i].unit;
      return estimates_.scores[static_cast<size_t>(u.layer)][static_cast<size_t>(u.index)];
    };
    struct Pair {
      double guess;
      size_t a, b;  // of the free ones
    };
    std::vector<Pair> all;
    for (size_t i = 0; i < free.size(); ++i)
      for (size_t k = i + 1; k < free.size(); ++k) {
        double product = 0;
        const std::vector<double>&x = scores(free[i]), &y = scores(free[k]);
        for (size_t s = 0; s < x.size(); ++s) product += x[s] * y[s];
        all.push_back({std::fabs(product), i, k});
      }
    const size_t wanted = std::min(kMostPairs, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted), all.end(),
                      [](const Pair& a, const Pair& b) { return a.guess > b.guess; });
    all.resize(wanted);
    std::vector<FixedHead> heads;
    std::map<size_t, size_t> numbers;  // of those that are in some pair
    const auto number = [&](size_t i) {
      const auto [at, fresh] = numbers.emplace(i, heads.size());
      const Unit& u = zero_heads_[free[i]].unit;
      const int64_t d_v = spec().blocks[static_cast<size_t>(u.layer)].attention().d_v;
      if (fresh) heads.push_back({u.layer, u.index, std::vector<double>(static_cast<size_t>(d_v), 0.0)});
      return at->second;
    };
    std::vector<std::pair<size_t, size_t>> chosen;
    for (const Pair& p : all) {
      const size_t a = number(p.a), b = number(p.b);
      chosen.emplace_back(a, b);
    }
    measure_stand_ins(evaluator_, heads, chosen, "pair:", table_);
  }

  const ImportanceJob& job_;
  ResultTable& table_;
  std::vector<std::string>& notes_;
  std::vector<int64_t> chosen_;
  Questions questions_;
  Evaluator evaluator_;
  Filing filing_;
  RowPlace everywhere_;
  AblationKinds kinds_;
  std::vector<Known> zero_heads_;
  HeadEstimates estimates_;
  double full_passes_ = evaluator_.passes();  // of the full network, until they are counted
};

}  // namespace

bool wants_importance(const ScanRequest& request) {
  return !request.ablate.empty() || std::any_of(request.rank.begin(), request.rank.end(), is_rank_curve);
}

void check_importance(const ScanRequest& request) {
  if (!request.ablate.empty()) parse_kinds(request.ablate);
  const std::vector<Replacement> replacements = parse_replacements(request.ablate_by);
  if (request.ablate.empty() && replacements != std::vector{Replacement::zero})
    throw usage_error("--ablate-by says what stands in the place of parts that --ablate takes out")
        .hint("--ablate heads --ablate-by mean");
  if (!request.ablate.empty() && parse_kinds(request.ablate).exact.empty() &&
      replacements != std::vector{Replacement::zero})
    throw usage_error("estimates are of heads that write zero, and nothing else is put in their place")
        .in("--ablate-by")
        .hint("--ablate heads --ablate-by mean");
  if (request.ablate_samples < 1) throw usage_error("--ablate-samples should be at least 1");
  if (!wants_importance(request) && request.ablate_samples != ScanRequest{}.ablate_samples)
    throw usage_error("--ablate-samples says how many samples --ablate and curves of --rank run")
        .hint("--ablate heads --ablate-samples 32");
  for (const std::string& words : request.rank)
    if (is_rank_curve(words)) parse_curve(words);
}

void add_importance(const ImportanceJob& job, ResultTable& table, std::vector<std::string>& notes) {
  Importance(job, table, notes).run();
  if (std::string cost = cost_note(table); !cost.empty()) notes.push_back(std::move(cost));
}

}  // namespace rankscope
