// How much of their width the heads' maps use.
#include <fmt/format.h>

#include <cmath>

#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {
template <class Width>
void low_rank(Case& c, std::string_view metric, std::string_view map, Width width) {
  const Row* lowest = nullptr;
  double lowest_share = INFINITY;
  int64_t lowest_width = 0;
  std::vector<std::string> low;
  size_t heads = 0;
  for (const Row* r : c.evidence.all("full", metric)) {
    if (r->layer < 0 || r->layer >= c.spec.depth()) continue;
    const int64_t d = width(c.spec.blocks[static_cast<size_t>(r->layer)].attention());
    if (d <= 0) continue;
    ++heads;
    const double share = r->value / static_cast<double>(d);
    if (share < c.limit("low_rank")) low.push_back(label(*r));
    if (share < lowest_share) lowest = r, lowest_share = share, lowest_width = d;
  }
  if (lowest == nullptr) {
    c.say("rank", fmt::format("not known for the {} maps: no {} was measured", map, metric), false).measured =
        false;
    return;
  }
  const Row* baseline = c.evidence.of_head(c.evidence.baseline(), metric, lowest->layer, lowest->head);
  const std::string number_of = fmt::format(
      "{} with effective rank {} of {} (share {}, threshold {}{})", label(*lowest), number(lowest->value),
      lowest_width, number(lowest_share), number(c.limit("low_rank")), c.beside(baseline));
  Finding& f = low.empty()
                   ? c.say("rank", fmt::format("no {} map is low in rank: the lowest is {}", map, number_of))
                   : c.say("rank", fmt::format("{} of {} {} maps are low in rank ({}): the lowest is {}",
                                               low.size(), heads, map, list_of(low), number_of));
  about(f, *lowest, c.limit("low_rank"), baseline);
}

void judge_rank(Case& c) {
  low_rank(c, "qk_effective_rank", "QK", [](const AttentionSpec& a) { return a.d_qk; });
  low_rank(c, "ov_effective_rank", "OV", [](const AttentionSpec& a) { return a.d_v; });
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_rank{
    .order = 60,
    .topic = "rank",
    .question = "How much of their width do the heads' maps use?",
    .thresholds = {{"low_rank", 0.1, "share",
                    "effective rank of a QK or OV map below this share of the head's width"}},
    .judge = verdict::judge_rank};

}  // namespace rankscope
