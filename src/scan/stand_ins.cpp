#include "scan/stand_ins.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/philox.h"
#include "model/head_means.h"
#include "pass/output.h"
#include "pass/pass.h"

namespace rankscope {
namespace {

constexpr size_t kAtOnce = 8;            // pairs: each holds two outputs
constexpr int kDraws = 400;              // of the bootstrap
constexpr uint64_t kSeed = 0x57a2d1257;  // so that a scan gives the same error twice

/// Standard error of the mean of x, by drawing as many of them again and again.
double bootstrap_error(const std::vector<double>& x) {
  if (x.size() < 2) return kNone;
  const Philox random{kSeed, 0, 0};
  uint64_t next = 0;
  double sum = 0, squares = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    double mean = 0;
    for (size_t i = 0; i < x.size(); ++i)
      mean += x[random.below(x.size(), next++)] / static_cast<double>(x.size());
    sum += mean, squares += mean * mean;
  }
  const double mean = sum / kDraws;
  return std::sqrt(std::max(0.0, squares / kDraws - mean * mean));
}

class StandIns {
 public:
  StandIns(const Ablation& a, const std::vector<MeanHead>& heads, ResultTable& table,
           std::vector<std::string>& notes)
      : a_(a), heads_(heads), table_(table), notes_(notes) {}

  void run() {
    std::vector<Variant> alone;
    for (const MeanHead& h : heads_) alone.push_back({"alone", fixed(spec(), h), 0, 0});
    alone_ = outputs(alone, full_);
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t i = 0; i < heads_.size(); ++i)
      for (size_t j = i + 1; j < heads_.size(); ++j) pairs.emplace_back(i, j);
    for (size_t first = 0; first < pairs.size(); first += kAtOnce)
      measure({pairs.begin() + static_cast<std::ptrdiff_t>(first),
               pairs.begin() + static_cast<std::ptrdiff_t>(std::min(pairs.size(), first + kAtOnce))});
  }

 private:
  using Output = std::vector<at::Tensor>;  // [N, d], one a batch
  const ModelSpec& spec() const { return a_.source.spec(); }

  static ModelSpec fixed(ModelSpec spec, const MeanHead& h) {
    return with_fixed_head(std::move(spec), h.layer, h.head, h.values);
  }

  PassPlan plan_of(const std::vector<Variant>& variants) const {
    PassPlan plan;
    plan.variants = {{"full", spec(), 0, 0}};
    plan.variants.insert(plan.variants.end(), variants.begin(), variants.end());
    plan.sources = {&a_.source};
    plan.inputs = {a_.batches};
    plan.layers = a_.layers;
    plan.device = a_.device;
    return plan;
  }

  /// What each of the networks gives, and the full one.
  std::vector<Output> outputs(const std::vector<Variant>& variants, Output& full) {
    PassPlan plan = plan_of(variants);
    ResultTable none;
    std::vector<FinalState> states = run_pass(plan, none, notes_, a_.progress);
    std::vector<Output> out(variants.size());
    for (FinalState& s : states) {
      s.cut_into(a_.batches);
      for (const size_t v : s.variants) (v == 0 ? full : out[v - 1]) = *s.x;
    }
    return out;
  }

  static FinalState state(size_t variant, const Output& x) {
    FinalState out;
    out.variants = {variant};
    *out.x = x;
    return out;
  }

  void measure(const std::vector<std::pair<size_t, size_t>>& pairs) {
    std::vector<Variant> both;
    for (const auto& [i, j] : pairs)
      both.push_back({fmt::format("-heads-mean:{}+{}", heads_[i].label, heads_[j].label),
                      fixed(fixed(spec(), heads_[i]), heads_[j]), 0, 0});
    const std::vector<Output> together = outputs(both, full_);
    PassPlan plan = plan_of(both);
    const size_t count = pairs.size();
    for (const auto& [i, j] : pairs)
      plan.variants.push_back({fmt::format("added:{}+{}", i, j), spec(), 0, 0});
    std::vector<FinalState> states;
    for (size_t p = 0; p < count; ++p) {
      if (together[p].empty() || alone_[pairs[p].first].empty() || alone_[pairs[p].second].empty()) continue;
      Output added;
      for (size_t b = 0; b < full_.size(); ++b)
        added.push_back(alone_[pairs[p].first][b] + alone_[pairs[p].second][b] - full_[b]);
      states.push_back(state(1 + p, together[p]));
      states.push_back(state(1 + count + p, added));
    }
    std::vector<const FinalState*> others;
    for (const FinalState& s : states) others.push_back(&s);
    ResultTable scratch;
    compare_outputs(state(0, full_), plan, others, plan, scratch, notes_);
    std::map<std::string, std::map<int64_t, double>> costs;
    for (const SampleRow& r : scratch.samples) costs[r.variant.str()][r.sample] = r.value;
    for (size_t p = 0; p < count; ++p)
      file(both[p].name, costs[both[p].name], costs[plan.variants[1 + count + p].name]);
  }

  void file(const std::string& name, const std::map<int64_t, double>& both,
            const std::map<int64_t, double>& added) {
    if (both.empty() || both.size() != added.size()) return;
    std::vector<double> more;
    double mean = 0;
    for (const auto& [sample, cost] : both) {
      more.push_back(cost - added.at(sample));
      mean += more.back() / static_cast<double>(both.size());
    }
    table_.rows.push_back({name, output_site(spec()), -1, -1, "stand_in", mean, bootstrap_error(more),
                           static_cast<int64_t>(more.size()), static_cast<int32_t>(spec().depth()), "all"});
  }

  const Ablation& a_;
  const std::vector<MeanHead>& heads_;
  ResultTable& table_;
  std::vector<std::string>& notes_;
  Output full_;
  std::vector<Output> alone_;
};

}  // namespace

void measure_stand_ins(const Ablation& what, const std::vector<MeanHead>& heads, ResultTable& table,
                       std::vector<std::string>& notes) {
  StandIns(what, heads, table, notes).run();
}

}  // namespace rankscope
