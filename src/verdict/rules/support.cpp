// Which part holds the rank up: the one without which the residual falls while the full network stands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {
bool takes_part_out(std::string_view variant) {
  return variant.starts_with('-') && !variant.starts_with("-head:") && !variant.starts_with("-heads:");
}

struct Phrase {
  std::string name;
  bool plural;
};

/// "-skip+mlp" as "the skips and the MLP".
Phrase phrase(std::string_view variant) {
  static const std::map<std::string_view, Phrase> words{
      {"skip", {"the skips", true}},         {"attention-skip", {"the attention skip", false}},
      {"mlp-skip", {"the MLP skip", false}}, {"mlp", {"the MLP", false}},
      {"norm", {"the norms", true}},         {"position", {"the positions", true}}};
  std::vector<std::string> names;
  bool plural = false;
  for (std::string_view rest = variant.substr(1); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('+'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const auto word = words.find(part);
    plural = word != words.end() && word->second.plural;
    names.push_back(word == words.end() ? printable(part) : word->second.name);
  }
  return {fmt::format("{}", fmt::join(names, " and ")), plural || names.size() > 1};
}

void support_by(Case& c, std::string_view variant) {
  const Phrase part = phrase(variant);
  const std::string holds = part.plural ? "hold" : "holds", them = part.plural ? "them" : "it";
  const Place *first = nullptr, *lowest = nullptr, *unclear = nullptr, *both_low = nullptr;
  for (const Place& p : c.path.places) {
    const Row *without = c.residual(variant, p), *full = c.residual("full", p);
    if (without == nullptr || full == nullptr) continue;
    if (lowest == nullptr || without->value < c.residual(variant, *lowest)->value) lowest = &p;
    const Side fallen = side(*without, c.limit("collapse")), standing = side(*full, c.limit("collapse"));
    if (fallen == Side::below && standing == Side::above && first == nullptr) first = &p;
    if (fallen == Side::unclear || (fallen == Side::below && standing == Side::unclear)) unclear = &p;
    if (fallen == Side::below && standing == Side::below) both_low = &p;
  }
  const auto unknown = [&](const std::string& why, const Place* p) {
    Finding& f = c.say("support",
                       fmt::format("not known whether {} {} the rank up: {}", part.name, holds, why), false);
    f.measured = p != nullptr;
    if (p != nullptr) about(f, *c.residual(variant, *p), c.limit("collapse"), c.residual("full", *p));
  };
  if (lowest == nullptr) return unknown("no residual_fro_rel_trimmed was measured with and without", nullptr);
  const Row &without = *c.residual(variant, *lowest), &full = *c.residual("full", *lowest);
  if (c.too_short())
    return unknown(
        fmt::format("the texts are too short; without {} the lowest residual is {} at {} (full: {})", them,
                    number(without.value), c.path.one(lowest->layer), number(full.value)),
        lowest);
  if (first != nullptr) {
    // The lowest residual is the more telling number, as long as the full network stands there.
    const bool stands = side(full, c.limit("collapse")) == Side::above;
    const Place& shown = stands ? *lowest : *first;
    const Row &low = *c.residual(variant, shown), &beside = *c.residual("full", shown);
    const std::string way =
        shown.layer == first->layer
            ? fmt::format("falls to {} by {}", number(low.value), c.path.one(shown.layer))
            : fmt::format("falls below {} by {} and to {} by {}", number(c.limit("collapse")),
                          c.path.one(first->layer), number(low.value), c.path.one(shown.layer));
    about(c.say("support",
                fmt::format("{} {} the rank up: without {} the residual {} (full: {}; threshold {})",
                            part.name, holds, them, way, number(beside.value), number(c.limit("collapse")))),
          low, c.limit("collapse"), &beside);
    return;
  }
  if (unclear != nullptr)
    return unknown(
        fmt::format("without {} the residual {} at {} is within two standard errors of the threshold {} "
                    "(full: {})",
                    them, with_error(*c.residual(variant, *unclear)), c.path.one(unclear->layer),
                    number(c.limit("collapse")), with_error(*c.residual("full", *unclear))),
        unclear);
  if (both_low != nullptr)
    return unknown(
        fmt::format("the full network is itself below {} where the one without {} is ({}: {} and {})",
                    number(c.limit("collapse")), them, c.path.one(both_low->layer),
                    number(c.residual("full", *both_low)->value),
                    number(c.residual(variant, *both_low)->value)),
        both_low);
  about(
      c.say(
          "support",
          fmt::format(
              "{} {} not hold the rank up alone: without {} the residual stays at {} or above ({}; full: {}; "
              "threshold {})",
              part.name, part.plural ? "do" : "does", them, number(without.value), c.path.one(lowest->layer),
              number(full.value), number(c.limit("collapse")))),
      without, c.limit("collapse"), &full);
}

void judge_support(Case& c) {
  bool any = false;
  for (const std::string_view variant : c.evidence.variants()) {
    if (!takes_part_out(variant)) continue;
    any = true;
    support_by(c, variant);
  }
  if (!any) c.say("support", "not known which part holds the rank up: scan with --off skip", false);
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_support{.order = 30,
                               .topic = "support",
                               .question = "Which part holds the rank up?",
                               .thresholds = {},
                               .judge = verdict::judge_support};

}  // namespace rankscope
