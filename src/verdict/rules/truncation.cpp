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
    if (kl == nullptr) {
      c.say("rank",
            fmt::format("not known what cutting every head to {} costs: no output_kl was measured", name),
            false);
      continue;
    }
    const Side s = side(*kl, c.limit("epsilon"));
    const std::string cost = fmt::format("cutting every head to {} costs output_kl {} (epsilon {}; full: 0)",
                                         name, with_error(*kl), number(c.limit("epsilon")));
    about(c.say("rank",
                cost + (s == Side::below   ? ": the output stays"
                        : s == Side::above ? ": the output changes"
                                           : ": not known whether that is more than epsilon"),
                s != Side::unclear),
          *kl, c.limit("epsilon"));
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
