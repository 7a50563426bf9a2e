// What cutting every head's maps to a rank costs the output.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>

#include "base/error.h"
#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {

/// "qk", 8 of "rank:qk=8"; nothing where several maps are cut.
std::optional<std::pair<std::string, int64_t>> one_map(std::string_view variant) {
  const size_t at = variant.find('=');
  if (!variant.starts_with("rank:") || at == std::string_view::npos ||
      variant.find('+') != std::string_view::npos)
    return {};
  int64_t rank = 0;
  const auto [end, error] = std::from_chars(variant.data() + at + 1, variant.data() + variant.size(), rank);
  if (error != std::errc{} || end != variant.data() + variant.size()) return {};
  return std::pair(printable(variant.substr(5, at - 5)), rank);
}

/// Where what a cut costs stands beside epsilon: an output that hardly changes may still be surer of another
/// token, so that the text loses.
Side cost_of_cut(const Case& c, std::string_view variant, const Row& output) {
  if (c.too_short()) return Side::unclear;
  const double epsilon = c.epsilon_of(output);
  const Side of_output = side(output, epsilon);
  const Row rise = c.loss_rise(variant);
  if (of_output == Side::above || rise.n == 0) return of_output;
  const Side of_text = side(rise, epsilon);
  return of_text == Side::below ? of_output : of_text;
}

/// Of several ranks of one map: the smallest within epsilon of the output, and of the loss where it is known.
void smallest(Case& c) {
  std::map<std::string, std::map<int64_t, Side>> tried;
  double epsilon = 0;
  for (const std::string_view variant : c.evidence.variants()) {
    const auto map = one_map(variant);
    const Row* cost = c.output_cost(variant);
    if (!map || cost == nullptr) continue;
    epsilon = c.epsilon_of(*cost);
    tried[map->first][map->second] = cost_of_cut(c, variant, *cost);
  }
  for (const auto& [map, ranks] : tried) {
    if (ranks.size() < 2) continue;
    std::vector<std::string> list;
    std::optional<int64_t> least;
    bool unclear = false;
    for (const auto& [rank, s] : ranks) {
      list.push_back(std::to_string(rank));
      if (least) continue;
      if (s == Side::below) least = rank;
      unclear = unclear || s == Side::unclear;
    }
    const std::string of = fmt::format("of {} tried for every head's {} map", list_of(list), map);
    if (!least)
      c.say("rank",
            fmt::format("{} rank {} keeps the output within epsilon {}",
                        unclear ? "not known whether any" : "no", of, number(epsilon)),
            !unclear)
          .asked = true;
    else
      c.say("rank",
            fmt::format("{}{} is the smallest rank within epsilon {} of the output, {}",
                        unclear ? "not known below it: " : "", *least, number(epsilon), of),
            !unclear)
          .claims = {
          {fmt::format("smallest rank of {}", map), unclear ? Claim::Answer::unknown : Claim::Answer::yes}};
  }
}

void judge_truncation(Case& c) {
  for (const std::string_view variant : c.evidence.variants()) {
    if (!variant.starts_with("rank:")) continue;
    const std::string name = printable(variant.substr(5));
    const Row* kl = c.output_cost(variant);
    if (kl == nullptr) {
      c.say("rank",
            fmt::format("not known what cutting every head to {} costs: neither output_kl nor output_error "
                        "was measured",
                        name),
            false);
      continue;
    }
    const double epsilon = c.epsilon_of(*kl);
    const Side s = cost_of_cut(c, variant, *kl);
    const bool stays = !c.too_short() && side(*kl, epsilon) == Side::below;
    const Row rise = c.loss_rise(variant);
    const std::string text =
        rise.n > 0 ? fmt::format(", loss {}{}", rise.value < 0 ? "" : "+", with_error(rise)) : "";
    const std::string cost = fmt::format("cutting every head to {} costs {} {}{} (epsilon {}; full: 0)", name,
                                         kl->metric.str(), with_error(*kl), text, number(epsilon));
    Finding& f = c.say("rank",
                       cost +
                           (s == Side::below            ? ": the output stays"
                            : s == Side::above && stays ? ": the output stays, and the loss rises"
                            : s == Side::above          ? ": the output changes"
                            : stays ? ": the output stays, and it is not known whether the loss rises by more"
                                    : ": not known whether that is more than epsilon") +
                           (c.too_short() ? "; " + c.short_text() : ""),
                       s != Side::unclear);
    about(f, *kl, epsilon);
    f.asked = true;
    f.claims = {{fmt::format("keeps {}", printable(variant)), answer_of(s, Side::below)}};
  }
  smallest(c);
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
