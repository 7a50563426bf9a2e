// What another attention in the place of the trained one costs the output and does to rank, without training.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {

constexpr const char* kRank = "effective_rank_rel";

// Whether "softmax=linear@L3-5,7" speaks of the layer; without an @ it speaks of all.
bool speaks_of(std::string_view text, int layer) {
  const size_t at = text.find("@L");
  if (at == std::string_view::npos) return true;
  int first = -1, number = 0;
  for (const char c : std::string(text.substr(at + 2)) + ",") {
    if (c >= '0' && c <= '9') {
      number = 10 * number + (c - '0');
      continue;
    }
    if (c == '-') {
      first = number;
    } else {
      if (layer >= (first < 0 ? number : first) && layer <= number) return true;
      first = -1;
    }
    number = 0;
  }
  return false;
}

// The mean over the heads of the layers that the variant speaks of; NaN where it was not measured.
double rank_in(const Case& c, std::string_view variant, std::string_view text) {
  double sum = 0;
  int heads = 0;
  for (const Row* r : c.evidence.all(variant, kRank))
    if (r->head >= 0 && r->tokens == "all" && speaks_of(text, r->layer) &&
        r->site.str().find(".attn.hook_") != std::string_view::npos)
      sum += r->value, ++heads;
  return sum / heads;
}

// Which side of epsilon the cost is on, in words.
std::string beside_epsilon(const Case& c, const Row& cost, double epsilon) {
  const std::string than = "than epsilon " + number(epsilon);
  if (c.too_short()) return fmt::format("not known whether more {}, as {}", than, c.short_text());
  switch (side(cost, epsilon)) {
    case Side::above:
      return "more " + than;
    case Side::below:
      return "less " + than;
    case Side::unclear:
      break;
  }
  return fmt::format("not known whether more {}, {}", than,
                     cost.n < 2 ? "as one sample has no error" : "as its error is too large");
}

// Every replacement was asked for, so each has its own sentence with both numbers, whatever they are.
void judge_replacement(Case& c) {
  constexpr std::string_view kPrefix = "replace:";
  constexpr size_t kLongestName = 400;  // the layers stand at its end
  bool any = false;
  for (const std::string_view variant : c.evidence.variants()) {
    if (!variant.starts_with(kPrefix)) continue;
    const std::string name = printable(variant.substr(kPrefix.size()), kLongestName);
    const Row* cost = c.output_cost(variant);
    const double before = rank_in(c, "full", name), after = rank_in(c, variant, name);
    const std::string rank =
        std::isnan(before + after)
            ? "the rank of its attention was not measured"
            : fmt::format("effective rank of attention there, as a share of the tokens: {} before, {} after",
                          number(before), number(after));
    if (cost == nullptr) {
      c.say("replaced", fmt::format("not known what {} costs: the output was not compared; {}", name, rank),
            false);
      continue;
    }
    const double epsilon = c.epsilon_of(*cost);
    const Side s = c.too_short() ? Side::unclear : side(*cost, epsilon);
    Finding& f = c.say("replaced",
                       fmt::format("{}, without training, costs {} {}, {}; {}", name, cost->metric.str(),
                                   with_error(*cost), beside_epsilon(c, *cost, epsilon), rank),
                       s != Side::unclear);
    any = true;
    about(f, *cost, epsilon);
    f.asked = true;
    f.claims = {{fmt::format("changes {}", name), answer_of(s, Side::above)}};
  }
  if (any)
    c.say("replaced", "a stress test of these weights: a network trained with it may differ").asked = true;
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_replacement{
    .order = 75,
    .topic = "replaced",
    .question = "What does another attention in its place cost, without training?",
    .thresholds = {},
    .judge = verdict::judge_replacement};

}  // namespace rankscope
