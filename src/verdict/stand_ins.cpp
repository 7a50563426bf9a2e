// Heads that stand in for each other, by their means (--ablate, of idle heads) or by zeros (of heads that are
// free alone).
#include <fmt/format.h>

#include "base/error.h"
#include "verdict/rule.h"

namespace rankscope::verdict {

bool say_stand_ins(Case& c, std::string_view prefix, std::string_view topic, std::string_view of_them) {
  std::vector<const Row*> rows;
  for (const std::string_view variant : c.evidence.variants())
    if (const Row* r = variant.starts_with(prefix) ? c.evidence.any(variant, "stand_in") : nullptr)
      rows.push_back(r);
  if (rows.empty()) return false;
  const double epsilon = c.limit(rows.front()->site == "unembed.hook_out" ? "epsilon" : "epsilon_error");
  const std::vector<Side> sides = sides_of(rows, epsilon);
  std::vector<std::string> found, unclear;
  std::vector<Claim> claims;
  const Row* most = rows.front();
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string pair = printable(std::string_view(rows[i]->variant.str()).substr(prefix.size()));
    if (rows[i]->value > most->value) most = rows[i];
    if (sides[i] == Side::above) found.push_back(pair);
    if (sides[i] == Side::unclear) unclear.push_back(pair);
    claims.push_back({fmt::format("{} {}", prefix.starts_with('-') ? "stand-ins" : "stand-ins at zero", pair),
                      answer_of(sides[i], Side::above)});
  }
  const std::string text = fmt::format("at most {} more than their effects add up to (epsilon {})",
                                       with_error(*most), number(epsilon));
  const size_t first = c.findings.size();
  Finding* f = nullptr;
  if (!found.empty())
    f = &c.say(std::string(topic),
               fmt::format("{} stand in for each other: each alone can go, and together they cost {}",
                           list_of(found), text));
  else if (unclear.empty())
    f = &c.say(
        std::string(topic),
        fmt::format(
            "of {} tried {} none stand in for each other: together they cost {}, so small costs add up",
            count_of(static_cast<double>(rows.size()), "pair"), of_them, text));
  if (f != nullptr) about(*f, *most, epsilon);
  if (!unclear.empty())
    c.say(std::string(topic),
          fmt::format("not known whether {} stand in for each other: {}", list_of(unclear),
                      why_unclear(*rows.front(), "epsilon")),
          false);
  c.findings[first].claims = std::move(claims);
  return true;
}

}  // namespace rankscope::verdict
