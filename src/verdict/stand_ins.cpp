// Heads that stand in for each other, by their means (--ablate, of idle heads) or by zeros (of heads that are
// free alone).
#include <fmt/format.h>

#include "base/error.h"
#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {

/// The pairs' rows of one metric, where each stands beside epsilon, and the largest.
struct Interactions {
  std::vector<const Row*> rows;
  std::vector<Side> sides;
  const Row* most = nullptr;
};

Interactions interactions_of(const Case& c, std::string_view prefix, std::string_view metric) {
  Interactions out;
  for (const std::string_view variant : c.evidence.variants())
    if (const Row* r = variant.starts_with(prefix) ? c.evidence.any(variant, metric) : nullptr) {
      out.rows.push_back(r);
      if (out.most == nullptr || r->value > out.most->value) out.most = r;
    }
  if (!out.rows.empty())
    out.sides =
        sides_of(out.rows, c.limit(out.most->site == "unembed.hook_out" ? "epsilon" : "epsilon_error"));
  return out;
}

}  // namespace

bool say_stand_ins(Case& c, std::string_view prefix, std::string_view topic, std::string_view of_them) {
  const Interactions output = interactions_of(c, prefix, "stand_in"),
                     text = interactions_of(c, prefix, "stand_in_loss");  // none, or one a pair
  if (output.rows.empty()) return false;
  const double epsilon = c.limit(output.most->site == "unembed.hook_out" ? "epsilon" : "epsilon_error");
  std::vector<std::string> found, unclear;
  std::vector<Claim> claims;
  const Row* open = nullptr;
  for (size_t i = 0; i < output.rows.size(); ++i) {
    const Row& r = *output.rows[i];
    const std::string pair = printable(std::string_view(r.variant.str()).substr(prefix.size()));
    // An output that hardly changes may still be surer of another token.
    const Side of_output = output.sides[i], of_text = text.rows.empty() ? Side::below : text.sides[i];
    const Side both = of_output == Side::above || of_text == Side::above       ? Side::above
                      : of_output == Side::unclear || of_text == Side::unclear ? Side::unclear
                                                                               : Side::below;
    if (both == Side::above) found.push_back(pair);
    if (both == Side::unclear) unclear.push_back(pair), open = open == nullptr ? &r : open;
    claims.push_back({fmt::format("{} {}", prefix.starts_with('-') ? "stand-ins" : "stand-ins at zero", pair),
                      answer_of(both, Side::above)});
  }
  const auto costs = [&](std::string_view their) {
    return fmt::format("at most {} more than {} effects add up to{} (epsilon {})", with_error(*output.most),
                       their,
                       text.rows.empty() ? "" : fmt::format(", loss at most {} more", with_error(*text.most)),
                       number(epsilon));
  };
  const size_t first = c.findings.size();
  Finding* f = nullptr;
  if (!found.empty())
    f = &c.say(std::string(topic),
               fmt::format("{} stand in for each other: each alone can go, and together they cost {}",
                           list_of(found), costs("their")));
  else if (unclear.empty())
    f = &c.say(std::string(topic),
               fmt::format("of {} tried {} none stand in for each other: a pair costs {}",
                           count_of(static_cast<double>(output.rows.size()), "pair"), of_them, costs("its")));
  if (f != nullptr) about(*f, *output.most, epsilon);
  if (!unclear.empty())
    c.say(std::string(topic),
          fmt::format("not known whether {} stand in for each other: {}", list_of(unclear),
                      why_unclear(*open, "epsilon")),
          false);
  c.findings[first].claims = std::move(claims);
  return true;
}

}  // namespace rankscope::verdict
