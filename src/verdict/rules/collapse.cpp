// Where tokens become alike: the trimmed residual of the content tokens, against a threshold and against a
// baseline.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {
std::string left_out(const Case& c, std::string_view variant, const Place& p) {
  const Row* channels = c.evidence.at_site(variant, "trimmed_channels", p.site, "content");
  const Row* tokens = c.evidence.at_site(variant, "trimmed_tokens", p.site, "content");
  if (channels == nullptr || tokens == nullptr) return "";
  return fmt::format("; left out there: {} and {} a sample", count_of(channels->value, "massive channel"),
                     count_of(tokens->value, "massive token"));
}

/// One sample has no spread, so nothing tells how far its number carries.
std::string alone(const Row& r) { return r.n == 1 ? "; one sample, so no error bar" : ""; }

/// The untrimmed number, where it would have told the opposite.
std::string untrimmed(const Case& c, const Place& p, Side expected) {
  const Row* r = c.evidence.at_site("full", "residual_fro_rel", p.site, "all");
  if (r == nullptr || side(*r, c.limit("collapse")) == expected ||
      side(*r, c.limit("collapse")) == Side::unclear)
    return "";
  return fmt::format("; with every token and channel it would read {}", number(r->value));
}

/// Low by itself, and low beside the baseline where there is one.
Side collapsed(const Case& c, const Row& r, const Row* baseline) {
  const Side low = side(r, c.limit("collapse"));
  if (baseline == nullptr || low == Side::above) return low;
  const double error =
      std::hypot(std::isfinite(r.stderr_) ? r.stderr_ : 0.0,
                 c.limit("collapse_ratio") * (std::isfinite(baseline->stderr_) ? baseline->stderr_ : 0.0));
  const Side relative = side(r.value, error, c.limit("collapse_ratio") * baseline->value);
  if (relative == Side::above || low == relative) return relative;
  return Side::unclear;
}

void judge_collapse(Case& c) {
  struct Seen {
    const Place* place;
    const Row* row;
    const Row* baseline;
  };
  std::vector<Seen> collapsed_at, low_at, unclear_at;
  std::optional<Seen> lowest;
  const auto keep_lowest = [](std::optional<Seen>& best, const Seen& s) {
    if (!best || s.row->value < best->row->value) best = s;
  };
  const auto least = [&](const std::vector<Seen>& all) {
    std::optional<Seen> best;
    for (const Seen& s : all) keep_lowest(best, s);
    return *best;
  };
  const auto layers = [](const std::vector<Seen>& all) {
    std::vector<int> out;
    for (const Seen& s : all) out.push_back(s.place->layer);
    return out;
  };
  for (const Place& p : c.path.places) {
    const Row* r = c.residual("full", p);
    if (r == nullptr) continue;
    const Seen seen{&p, r, c.residual(c.evidence.baseline(), p)};
    keep_lowest(lowest, seen);
    const Side s = collapsed(c, *r, seen.baseline);
    if (s == Side::below) collapsed_at.push_back(seen);
    if (s == Side::unclear) unclear_at.push_back(seen);
    if (s == Side::above && side(*r, c.limit("collapse")) == Side::below) low_at.push_back(seen);
  }
  if (!lowest) {
    c.say("collapse", "not known: no residual_fro_rel_trimmed of content tokens was measured", false)
        .measured = false;
    return;
  }
  if (c.too_short()) {
    about(c.say("collapse",
                fmt::format(
                    "not known: the texts are too short; the lowest residual is {} ({}), threshold {}{}",
                    number(lowest->row->value), c.path.where({lowest->place->layer}),
                    number(c.limit("collapse")), c.beside(lowest->baseline)),
                false),
          *lowest->row, c.limit("collapse"), lowest->baseline);
    return;
  }
  if (!collapsed_at.empty()) {
    const Seen worst = least(collapsed_at);
    Finding& f = c.say("collapse",
                       fmt::format("tokens are nearly all alike {}: residual {} at {}, threshold {}{}{}{}{}",
                                   c.path.where(layers(collapsed_at)), with_error(*worst.row),
                                   c.path.one(worst.place->layer), number(c.limit("collapse")),
                                   c.beside(worst.baseline), left_out(c, "full", *worst.place),
                                   untrimmed(c, *worst.place, Side::below), alone(*worst.row)));
    about(f, *worst.row, c.limit("collapse"), worst.baseline);
    if (worst.baseline == nullptr)
      c.say("collapse",
            "not known whether that is unusual: there is nothing to hold it against; scan with --null or "
            "--baseline DIR",
            false);
  }
  if (!low_at.empty()) {
    const Seen worst = least(low_at);
    about(c.say("collapse",
                fmt::format(
                    "tokens are much alike {}, but no more than in {}: residual {} at {}{}, which is not "
                    "below {} times that",
                    c.path.where(layers(low_at)), c.evidence.baseline_name(), with_error(*worst.row),
                    c.path.one(worst.place->layer), c.beside(worst.baseline),
                    number(c.limit("collapse_ratio")))),
          *worst.row, c.limit("collapse"), worst.baseline);
  }
  if (!unclear_at.empty()) {
    const Seen worst = least(unclear_at);
    about(c.say("collapse",
                fmt::format("not known {}: residual {} at {} is within two standard errors of its threshold "
                            "({}{}); more samples would decide",
                            c.path.where(layers(unclear_at)), with_error(*worst.row),
                            c.path.one(worst.place->layer), number(c.limit("collapse")),
                            c.beside(worst.baseline)),
                false),
          *worst.row, c.limit("collapse"), worst.baseline);
  }
  if (collapsed_at.empty() && low_at.empty() && unclear_at.empty()) {
    // A massive channel makes some other place look collapsed: that is the one worth a word.
    std::string trap;
    for (const Place& p : c.path.places)
      if (trap.empty() && c.residual("full", p) != nullptr && !untrimmed(c, p, Side::above).empty())
        trap = fmt::format("{} at {}{}", untrimmed(c, p, Side::above), c.path.one(p.layer),
                           left_out(c, "full", p));
    about(c.say("collapse",
                fmt::format("no layer collapses: the lowest residual is {} ({}), threshold {}{}{}{}",
                            with_error(*lowest->row), c.path.where({lowest->place->layer}),
                            number(c.limit("collapse")), c.beside(lowest->baseline), trap,
                            alone(*lowest->row))),
          *lowest->row, c.limit("collapse"), lowest->baseline);
  }
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_collapse{
    .order = 20,
    .topic = "collapse",
    .question = "Where do tokens become alike?",
    .thresholds = {{"collapse", 0.1, "share",
                    "residual below this: the tokens of the layer are nearly all alike"},
                   {"collapse_ratio", 0.5, "ratio",
                    "... and below this share of the baseline's, where there is one"}},
    .judge = verdict::judge_collapse};

}  // namespace rankscope
