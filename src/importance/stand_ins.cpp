#include "importance/stand_ins.h"

#include <fmt/format.h>

#include <cmath>

#include "base/philox.h"
#include "base/stats.h"
#include "model/head_means.h"
#include "pass/output.h"

namespace rankscope {
namespace {

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

/// The network in which these heads carry their numbers.
Variation fixed(const ModelSpec& full, const std::vector<const FixedHead*>& heads) {
  ModelSpec spec = full;
  for (const FixedHead* h : heads) spec = with_fixed_head(std::move(spec), h->layer, h->head, h->values);
  Variation v;
  v.first = heads.front()->layer;
  for (const FixedHead* h : heads) {
    v.first = std::min(v.first, h->layer);
    v.edits[h->layer] = {spec.blocks[static_cast<size_t>(h->layer)], 0};
  }
  return v;
}

}  // namespace

std::string FixedHead::label() const { return fmt::format("L{}H{}", layer, head); }

void measure_stand_ins(Evaluator& evaluator, const std::vector<FixedHead>& heads,
                       const std::vector<std::pair<size_t, size_t>>& pairs, const std::string& prefix,
                       ResultTable& table) {
  const ModelSpec& spec = evaluator.spec();
  std::vector<Variation> alone, both;
  for (const FixedHead& h : heads) alone.push_back(fixed(spec, {&h}));
  for (const auto& [a, b] : pairs) both.push_back(fixed(spec, {&heads[a], &heads[b]}));
  const std::vector<std::vector<double>> more = evaluator.beyond_added(alone, both, pairs);
  for (size_t i = 0; i < pairs.size(); ++i)
    table.rows.push_back(
        {fmt::format("{}{}+{}", prefix, heads[pairs[i].first].label(), heads[pairs[i].second].label()),
         output_site(spec), -1, -1, "stand_in", arithmetic_mean(more[i]).value, bootstrap_error(more[i]),
         static_cast<int64_t>(more[i].size()), static_cast<int32_t>(spec.depth()), "all"});
}

}  // namespace rankscope
