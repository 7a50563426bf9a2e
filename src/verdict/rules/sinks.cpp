// Heads whose queries nearly all look at one key.
#include <fmt/format.h>

#include <map>

#include "verdict/rule.h"

namespace rankscope::verdict {

namespace {

void judge_sinks(Case& c) {
  struct Sink {
    const Row* mass = nullptr;
    double uniform = 0;
    double excess() const { return mass->value - uniform; }
  };
  const auto read = [&](std::string_view variant, std::map<int, int>& by_layer,
                        std::vector<std::string>& unclear) {
    Sink strongest;
    for (const Row* mass : c.evidence.all(variant, "sink_mass")) {
      const Row* uniform = c.evidence.of_head(variant, "sink_uniform", mass->layer, mass->head);
      if (uniform == nullptr) continue;
      const Sink sink{mass, uniform->value};
      if (strongest.mass == nullptr || sink.excess() > strongest.excess()) strongest = sink;
      const Side s = side(sink.excess(), mass->stderr_, c.limit("sink"));
      if (s == Side::above) ++by_layer[mass->layer];
      if (s == Side::unclear) unclear.push_back(label(*mass));
    }
    return strongest;
  };
  std::map<int, int> by_layer, in_baseline;
  std::vector<std::string> unclear, ignored;
  const Sink strongest = read("full", by_layer, unclear);
  if (strongest.mass == nullptr) {
    c.say("sink", "not known: no sink_mass with its sink_uniform was measured", false).measured = false;
    return;
  }
  const Row* position =
      c.evidence.of_head("full", "sink_position", strongest.mass->layer, strongest.mass->head);
  std::string place = "a position that was not recorded";
  if (position != nullptr) {
    place = fmt::format("position {}", number(position->value));
    if (position->value == 0 && c.spec.causal()) place += ", the first token of a causal model";
  }
  const std::string strength = fmt::format(
      "{} with mass {} on {} (uniform attention: {}; threshold: {} above it)", label(*strongest.mass),
      with_error(*strongest.mass), place, number(strongest.uniform), number(c.limit("sink")));
  const size_t heads = c.evidence.all("full", "sink_mass").size();
  int count = 0;
  std::vector<std::string> layers;
  for (const auto& [layer, n] : by_layer) {
    count += n;
    layers.push_back(fmt::format("{} in layer {}", n, layer));
  }
  std::string beside;
  if (!c.evidence.all(c.evidence.baseline(), "sink_mass").empty()) {
    read(c.evidence.baseline(), in_baseline, ignored);
    int n = 0;
    for (const auto& entry : in_baseline) n += entry.second;
    beside = fmt::format("; {}: {}", c.evidence.baseline_name(), n);
  }
  Finding& f = count == 0
                   ? c.say("sink", fmt::format("no head is {}sink: the strongest is {}{}",
                                               unclear.empty() ? "a " : "clearly a ", strength, beside))
                   : c.say("sink", fmt::format("{} of {} heads are sinks ({}): the strongest is {}{}", count,
                                               heads, list_of(layers), strength, beside));
  about(f, *strongest.mass, c.limit("sink"));
  f.baseline = strongest.uniform;
  if (!unclear.empty())
    c.say("sink",
          fmt::format(
              "not known for {}: mass within two standard errors of {} above uniform; more samples would "
              "decide",
              list_of(unclear), number(c.limit("sink"))),
          false);
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_sinks{
    .order = 40,
    .topic = "sink",
    .question = "Which heads look at one key, whatever the query?",
    .thresholds = {{"sink", 0.3, "share", "attention on one key, above uniform, that makes a head a sink"}},
    .judge = verdict::judge_sinks};

}  // namespace rankscope
