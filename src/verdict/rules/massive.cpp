// Activations that dwarf the rest, and where they sit.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "verdict/rule.h"

namespace rankscope::verdict {

namespace {

// The residual stream is where they live; a norm only passes them on.
template <class AnyRow>
bool of_the_stream(const AnyRow& r) {
  return r.head < 0 && r.site.str().find("hook_normalized") == std::string::npos;
}

/// The samples that are above the threshold by their own number, whatever the mean over all of them is.
struct Alone {
  std::set<int64_t> above, all;
  const SampleRow* largest = nullptr;
};

Alone alone(const Case& c) {
  Alone out;
  for (const SampleRow* r : c.evidence.samples("full", "massive_ratio")) {
    if (!of_the_stream(*r)) continue;
    out.all.insert(r->sample);
    if (r->value > c.limit("massive")) out.above.insert(r->sample);
    if (out.largest == nullptr || r->value > out.largest->value) out.largest = r;
  }
  return out;
}

/// ", position 0, channel 447": of the sample with the largest ratio at that site.
std::string place_at(const Case& c, const std::string& site) {
  const Row *token = c.evidence.at_site("full", "massive_token", site, "all"),
            *channel = c.evidence.at_site("full", "massive_channel", site, "all");
  return token == nullptr || channel == nullptr
             ? site
             : fmt::format("{}, position {}, channel {}", site, token->value, channel->value);
}

/// Where there is nothing but zeros nothing is large beside the median.
void say_without_ratio(Case& c) {
  std::vector<std::string> without;
  for (const Row* r : c.evidence.all("full", "residual_fro")) {
    if (!of_the_stream(*r) || r->tokens != "all") continue;
    const Row* ratio = c.evidence.at_site("full", "massive_ratio", r->site.str(), "all");
    if (ratio == nullptr)
      without.push_back(r->site.str());
    else if (ratio->n < r->n)
      without.push_back(fmt::format("{} in {} of {} samples", r->site.str(), r->n - ratio->n, r->n));
  }
  if (!without.empty())
    c.say("massive",
          fmt::format("not known at {}: there is no median to be large beside, as all activations are zero",
                      list_of(without)),
          false);
}

void judge_massive(Case& c) {
  const Row* largest = nullptr;
  std::vector<int> layers;
  bool embedded = false;
  std::vector<std::string> unclear;
  for (const Row* r : c.evidence.all("full", "massive_ratio")) {
    if (!of_the_stream(*r)) continue;
    const Side s = side(*r, c.limit("massive"));
    // One that is surely massive speaks, beside a larger one that is not known.
    const bool sure = s == Side::above,
               known = largest != nullptr && side(*largest, c.limit("massive")) == Side::above;
    if (largest == nullptr || (sure && !known) || (sure == known && r->value > largest->value)) largest = r;
    if (s == Side::above && r->depth > 0) layers.push_back(r->layer);
    embedded = embedded || (s == Side::above && r->depth == 0);
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
  const Row* baseline =
      c.evidence.baseline().empty()
          ? nullptr
          : c.evidence.at_site(c.evidence.baseline(), "massive_ratio", site, largest->tokens.str());
  const std::string measured = fmt::format("{} times the median at {}; threshold {}{}", with_error(*largest),
                                           place_at(c, site), number(c.limit("massive")), c.beside(baseline));
  std::sort(layers.begin(), layers.end());
  Side answer = side(*largest, c.limit("massive"));
  const Alone samples = alone(c);
  std::string after = layers.empty() ? "in the embeddings" : "after " + layers_text(layers);
  if (!layers.empty() && embedded) after = "in the embeddings and " + after;
  const size_t first = c.findings.size();
  if (answer == Side::above) {
    about(c.say("massive",
                fmt::format("massive activations {}: on average over samples up to {}", after, measured)),
          *largest, c.limit("massive"), baseline);
  } else if (!samples.above.empty() && samples.all.size() > 1) {
    // By their own number some samples have them, whatever the mean is.
    answer = Side::unclear;
    Finding& f =
        c.say("massive",
              fmt::format("massive activations in {} of {} samples: up to {} times the median, in sample "
                          "{} at {}; threshold {}; the largest mean over samples is {} at {}",
                          samples.above.size(), samples.all.size(), number(samples.largest->value),
                          samples.largest->sample, place_at(c, samples.largest->site.str()),
                          number(c.limit("massive")), with_error(*largest), site));
    about(f, *largest, c.limit("massive"), baseline);
    f.layer = samples.largest->layer;
    f.value = samples.largest->value;
    f.claims = {{"massive in some samples", Claim::Answer::yes}};
  } else if (unclear.empty()) {
    about(
        c.say("massive",
              fmt::format("no massive activations in what blocks leave: the largest mean over samples is {}",
                          measured)),
        *largest, c.limit("massive"), baseline);
  }
  if (!unclear.empty())
    c.say("massive",
          fmt::format("not known at {}: {}", list_of(unclear),
                      why_unclear(*largest, fmt::format("{} times the median", number(c.limit("massive"))))),
          false);
  c.findings[first].claims.push_back({"massive", answer_of(answer, Side::above)});
  say_without_ratio(c);
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_massive{
    .order = 80,
    .topic = "massive",
    .question = "Are there activations that dwarf the rest?",
    .thresholds = {{"massive", 1000, "ratio",
                    "largest over median activation that is not 0, above this: massive activations"}},
    .judge = verdict::judge_massive};

}  // namespace rankscope
