// How much of their width the heads' maps use, and what cutting them costs the output.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
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
    if (share < c.limits.low_rank) low.push_back(label(*r));
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
      lowest_width, number(lowest_share), number(c.limits.low_rank), c.beside(baseline));
  Finding& f = low.empty()
                   ? c.say("rank", fmt::format("no {} map is low in rank: the lowest is {}", map, number_of))
                   : c.say("rank", fmt::format("{} of {} {} maps are low in rank ({}): the lowest is {}",
                                               low.size(), heads, map, list_of(low), number_of));
  about(f, *lowest, c.limits.low_rank, baseline);
}

}  // namespace

void judge_rank(Case& c) {
  low_rank(c, "qk_effective_rank", "QK", [](const AttentionSpec& a) { return a.d_qk; });
  low_rank(c, "ov_effective_rank", "OV", [](const AttentionSpec& a) { return a.d_v; });
}

void judge_truncation(Case& c) {
  for (const std::string_view variant : c.evidence.variants()) {
    if (!variant.starts_with("rank:")) continue;
    const std::string name = printable(variant.substr(5));
    const Row* kl = c.evidence.any(variant, "output_kl");
    if (kl == nullptr) {
      c.say("rank",
            fmt::format("not known what cutting every head to {} costs: no output_kl was measured", name),
            false);
      continue;
    }
    const Side s = side(*kl, c.limits.epsilon);
    const std::string cost = fmt::format("cutting every head to {} costs output_kl {} (epsilon {}; full: 0)",
                                         name, with_error(*kl), number(c.limits.epsilon));
    about(c.say("rank",
                cost + (s == Side::below   ? ": the output stays"
                        : s == Side::above ? ": the output changes"
                                           : ": not known whether that is more than epsilon"),
                s != Side::unclear),
          *kl, c.limits.epsilon);
  }
}

}  // namespace rankscope::verdict
