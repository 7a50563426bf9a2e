// Activations that dwarf the rest, and where they sit.
#include <fmt/format.h>

#include <algorithm>

#include "verdict/rule.h"

namespace rankscope::verdict {

namespace {

void judge_massive(Case& c) {
  const Row* largest = nullptr;
  std::vector<int> layers;
  std::vector<std::string> unclear;
  for (const Row* r : c.evidence.all("full", "massive_ratio")) {
    // The residual stream is where they live; a norm only passes them on.
    if (r->head >= 0 || r->site.str().find("hook_normalized") != std::string::npos) continue;
    const Side s = side(*r, c.limit("massive"));
    // One that is surely massive speaks, beside a larger one that is not known.
    const bool sure = s == Side::above,
               known = largest != nullptr && side(*largest, c.limit("massive")) == Side::above;
    if (largest == nullptr || (sure && !known) || (sure == known && r->value > largest->value)) largest = r;
    if (s == Side::above && r->depth > 0) layers.push_back(r->layer);
    if (s == Side::unclear) unclear.push_back(fmt::format("{} ({})", r->site.str(), with_error(*r)));
  }
  if (largest == nullptr) {
    c.say("massive", "not known: no massive_ratio was measured", false).measured = false;
    return;
  }
  if (c.too_short()) {
    c.say("massive", fmt::format("not known: {}", c.short_text()), false).claims = {
        {"massive", Claim::Answer::unknown}};
    return;
  }
  const std::string& site = largest->site.str();
  const auto same_place = [&](std::string_view variant, std::string_view metric) {
    return variant.empty() ? nullptr : c.evidence.at_site(variant, metric, site, largest->tokens.str());
  };
  std::string where = site;
  if (const Row* token = same_place("full", "massive_token"),
      *channel = same_place("full", "massive_channel");
      token != nullptr && channel != nullptr)
    where += fmt::format(", token {}, channel {}", token->value, channel->value);
  const Row* baseline = same_place(c.evidence.baseline(), "massive_ratio");
  const std::string measured = fmt::format("{} times the median at {}; threshold {}{}", with_error(*largest),
                                           where, number(c.limit("massive")), c.beside(baseline));
  std::sort(layers.begin(), layers.end());
  const Side answer = side(*largest, c.limit("massive"));
  const bool found = answer == Side::above;
  const std::string after = layers.empty() ? "in the embeddings" : "after " + layers_text(layers);
  const size_t first = c.findings.size();
  if (found || unclear.empty())
    about(c.say("massive", found ? fmt::format("massive activations {}: up to {}", after, measured)
                                 : fmt::format("no massive activations: the largest is {}", measured)),
          *largest, c.limit("massive"), baseline);
  if (!unclear.empty())
    c.say("massive",
          fmt::format("not known at {}: {}", list_of(unclear),
                      why_unclear(*largest, fmt::format("{} times the median", number(c.limit("massive"))))),
          false);
  c.findings[first].claims = {{"massive", answer_of(answer, Side::above)}};
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_massive{
    .order = 80,
    .topic = "massive",
    .question = "Are there activations that dwarf the rest?",
    .thresholds = {{"massive", 1000, "ratio",
                    "largest over median activation above this: massive activations"}},
    .judge = verdict::judge_massive};

}  // namespace rankscope
