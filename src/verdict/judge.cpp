#include "verdict/rule.h"

#include <fmt/format.h>

namespace rankscope::verdict {

void judge_input(Case& c) {
  if (!c.too_short()) return;
  Finding& f = c.say(
      "input", fmt::format("the shortest sample has {}, fewer than {}: so few tokens say little about "
                           "rank, whatever the model",
                           count_of(static_cast<double>(c.shortest), "content token"), c.limits.short_text));
  f.value = static_cast<double>(c.shortest);
  f.threshold = static_cast<double>(c.limits.short_text);
}

}  // namespace rankscope::verdict

namespace rankscope {

std::vector<Finding> judge(const ResultTable& table, const ModelSpec& spec, const Thresholds& thresholds,
                           int64_t shortest_content) {
  using namespace verdict;  // NOLINT(google-build-using-namespace): this is its way out
  Case c{Evidence(table), spec, thresholds, shortest_content, Path(spec), {}};
  judge_input(c);
  judge_collapse(c);
  judge_support(c);
  judge_sinks(c);
  judge_heads(c);
  judge_rank(c);
  judge_truncation(c);
  judge_massive(c);
  return std::move(c.findings);
}

}  // namespace rankscope
