#include "importance/stand_ins.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stats.h"
#include "model/head_means.h"
#include "pass/output.h"

namespace rankscope {
namespace {

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
  const std::vector<Judged> more = evaluator.beyond_added(alone, both, pairs);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string name =
        fmt::format("{}{}+{}", prefix, heads[pairs[i].first].label(), heads[pairs[i].second].label());
    const auto file = [&](const char* metric, const std::vector<double>& samples) {
      const Estimate mean = arithmetic_mean(samples);
      table.rows.push_back({name, output_site(spec), -1, -1, metric, mean.value, mean.stderr_,
                            static_cast<int64_t>(samples.size()), static_cast<int32_t>(spec.depth()), "all"});
    };
    file("stand_in", more[i].kl);
    if (!more[i].loss.empty()) file("stand_in_loss", more[i].loss);
  }
}

}  // namespace rankscope
