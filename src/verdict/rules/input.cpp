// Whether the texts are long enough to say anything.
#include <fmt/format.h>

#include "verdict/rule.h"

namespace rankscope {
namespace {

void judge_input(verdict::Case& c) {
  if (!c.too_short()) return;
  const double least = c.limit("short_text");
  Finding& f =
      c.say("input",
            fmt::format("the shortest sample has {}, fewer than {}: so few tokens say little about "
                        "rank, whatever the model",
                        verdict::count_of(static_cast<double>(c.measured.shortest), "content token"), least));
  f.value = static_cast<double>(c.measured.shortest);
  f.threshold = least;
  f.claims = {{"short texts", Claim::Answer::yes}};
}

}  // namespace

extern const Rule rule_input{
    .order = 10,
    .topic = "input",
    .question = "Are the texts long enough?",
    .thresholds = {{"short_text", 8, "tokens", "fewer content tokens than this decide nothing"},
                   {"few_tokens", 32, "tokens", "... and than this, nothing about sinks or alike tokens"},
                   {"few_samples", 4, "samples", "... as do fewer samples than this"}},
    .judge = judge_input};

}  // namespace rankscope
