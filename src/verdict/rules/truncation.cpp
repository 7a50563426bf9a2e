// What cutting every head's maps to a rank costs the output.
#include <fmt/format.h>

#include "base/error.h"
#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {

void judge_truncation(Case& c) {
  for (const std::string_view variant : c.evidence.variants()) {
    if (!variant.starts_with("rank:")) continue;
    const std::string name = printable(variant.substr(5));
    const Row* kl = c.evidence.any(variant, "output_kl");
    if (kl == nullptr) kl = c.evidence.any(variant, "output_error");
    if (kl == nullptr) {
      c.say("rank",
            fmt::format("not known what cutting every head to {} costs: neither output_kl nor output_error "
                        "was measured",
                        name),
            false);
      continue;
    }
    const double epsilon = c.limit(kl->metric == "output_kl" ? "epsilon" : "epsilon_error");
    const Side s = side(*kl, epsilon);
    const std::string cost = fmt::format("cutting every head to {} costs {} {} (epsilon {}; full: 0)", name,
                                         kl->metric.str(), with_error(*kl), number(epsilon));
    Finding& f = c.say("rank",
                       cost + (s == Side::below   ? ": the output stays"
                               : s == Side::above ? ": the output changes"
                                                  : ": not known whether that is more than epsilon"),
                       s != Side::unclear);
    about(f, *kl, epsilon);
    f.claims = {{fmt::format("keeps {}", printable(variant)), answer_of(s, Side::below)}};
  }
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_truncation{.order = 70,
                                  .topic = "rank",
                                  .question = "What does cutting the heads' ranks cost the output?",
                                  .thresholds = {},
                                  .judge = verdict::judge_truncation};

}  // namespace rankscope
