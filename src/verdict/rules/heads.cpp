// Heads that could go. Candidates write next to nothing that differs between tokens; what the output loses
// when such a head writes its mean (or only what its biases write) decides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {

constexpr double kAble = 3;  // times `dead`: a head that could write so much is not idle for want of weights

struct Group {
  std::vector<std::string> heads;
  double most = 0, least = INFINITY;
  double able = INFINITY;  // dormant: the least that one of them could write
  const Row* cost = nullptr;
  std::vector<Claim> claims = {};

  void add(const Row& head, const Row& c) {
    heads.push_back(label(head));
    most = std::max(most, c.value);
    least = std::min(least, c.value);
    cost = &c;
  }
};

/// "L0H0" and "L1H3" of "L0H0+L1H3".
std::vector<std::string> split_at_plus(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find('+'));
    out.push_back(printable(one));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
  }
  return out;
}

void together(Case& c, const std::vector<std::string>& accepted) {
  for (const std::string_view variant : c.evidence.variants()) {
    const Row* cost = variant.starts_with("-heads-mean:") ? c.output_cost(variant) : nullptr;
    if (cost == nullptr) continue;
    const double epsilon = c.epsilon_of(*cost);
    const std::vector<std::string> heads = split_at_plus(variant.substr(variant.find(':') + 1));
    const bool each = std::ranges::all_of(
        heads, [&](const std::string& head) { return std::ranges::find(accepted, head) != accepted.end(); });
    const Side s = side(*cost, epsilon);
    const std::string text =
        fmt::format("without {} together{}: their means in their places cost {} {} (epsilon {})",
                    list_of(heads), s == Side::above && each ? ", though it does without each" : "",
                    cost->metric.str(), with_error(*cost), number(epsilon));
    Finding& f = s == Side::below ? c.say("head", fmt::format("the output stays {}", text))
                 : s == Side::unclear
                     ? c.say("head", fmt::format("not known whether the output stays {}", text), false)
                     : c.say("head", fmt::format("the output does not stay {}", text));
    about(f, *cost, epsilon);
    say_stand_ins(c, "-heads-mean:", "head", "of them");
    return;
  }
  if (accepted.size() > 1)
    c.say("head",
          fmt::format("not known whether the output stays without these {} heads together: run with --ablate",
                      accepted.size()),
          false);
}

void duplicates(Case& c) {
  const std::vector<const Row*>& rows = c.evidence.all("full", "head_predicted");
  if (rows.empty()) return;
  if (const std::string few = c.too_few(*rows.front()); !few.empty()) {
    c.say("head", fmt::format("not known whether heads write what others of their layer write: {}", few),
          false);
    return;
  }
  const double limit = c.limit("duplicate");
  const std::vector<Side> sides = sides_of(rows, limit);
  std::vector<std::string> found, unclear;
  std::vector<Claim> claims;
  const Row *most = rows.front(), *most_unclear = nullptr;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (sides[i] == Side::above) found.push_back(label(*rows[i]));
    if (sides[i] == Side::unclear) {
      unclear.push_back(label(*rows[i]));
      if (most_unclear == nullptr || rows[i]->value > most_unclear->value) most_unclear = rows[i];
    }
    if (rows[i]->value > most->value) most = rows[i];
    claims.push_back({fmt::format("duplicate {}", label(*rows[i])), answer_of(sides[i], Side::above)});
  }
  const auto nearest = [&](const Row& r) {
    return fmt::format("{} with R^2 {} (threshold {}; tokens far from the rest left out)", label(r),
                       with_error(r), number(limit));
  };
  const std::string text = nearest(*most);
  const size_t first = c.findings.size();
  if (found.empty() && unclear.empty())
    about(c.say("head", fmt::format("no head writes what the others of its layer write{}: the nearest is {}",
                                    c.of_those("head_predicted"), text)),
          *most, limit);
  if (!found.empty())
    about(c.say("head", fmt::format("{} {} little that other heads of the layer do not write, up to sizes "
                                    "and signs: the nearest is {}",
                                    list_of(found), found.size() == 1 ? "writes" : "write", text)),
          *most, limit);
  if (!unclear.empty())
    about(c.say("head",
                fmt::format("not known whether {} {} what others of the layer write: the nearest is {}; {}",
                            list_of(unclear), unclear.size() == 1 ? "writes" : "write",
                            nearest(*most_unclear), why_unclear(*most_unclear, number(limit))),
                false),
          *most_unclear, limit);
  c.findings[first].claims = std::move(claims);
}

void say_cost(Case& c, const Group& g, std::string_view what, std::string_view why, double value) {
  if (g.heads.empty()) return;
  Finding& f = c.say("head", fmt::format("{} {} {}: {} {} {} (epsilon {})", list_of(g.heads),
                                         g.heads.size() == 1 ? "is" : "are", what, why, g.cost->metric.str(),
                                         number(value), number(c.epsilon_of(*g.cost))));
  f.value = value;
  f.threshold = c.epsilon_of(*g.cost);
  f.claims = g.claims;
}

/// Heads are counted, so they are tested together.
std::map<const Row*, Side> by_row(const std::vector<const Row*>& rows, double threshold) {
  std::map<const Row*, Side> out;
  const std::vector<Side> sides = sides_of(rows, threshold);
  for (size_t i = 0; i < rows.size(); ++i) out[rows[i]] = sides[i];
  return out;
}

/// The heads by what is known of them: some were taken out, of the others their writing alone is known.
struct Looked {
  std::vector<const Row*> ablated, costs;  // taken out, and what that cost; in step
  std::vector<std::string> undecided;      // not taken out, though they write next to nothing
  const Row* first_undecided = nullptr;
  std::vector<Claim> claims;
};

Looked look_at(const Case& c, const std::vector<const Row*>& rows, const std::vector<Side>& varied,
               double dead) {
  Looked out;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row* r = rows[i];
    if (const Row* cost = c.output_cost("-head-mean:" + label(*r))) {
      out.ablated.push_back(r);
      out.costs.push_back(cost);
      continue;
    }
    out.claims.push_back({fmt::format("idle {}", label(*r)),
                          varied[i] == Side::above ? Claim::Answer::no : Claim::Answer::unknown});
    if (r->value >= dead) continue;
    out.undecided.push_back(fmt::format("{} ({})", label(*r), number(r->value)));
    if (out.first_undecided == nullptr) out.first_undecided = r;
  }
  return out;
}

void say_weakest(Case& c, const std::vector<const Row*>& rows, const std::vector<Side>& varied, double dead) {
  const Row& weakest = **std::min_element(rows.begin(), rows.end(),
                                          [](const Row* a, const Row* b) { return a->value < b->value; });
  const bool known = std::all_of(varied.begin(), varied.end(), [](Side s) { return s == Side::above; });
  about(c.say("head",
              fmt::format("{}{}: the weakest, {}, varies by {} of what the stream varies, threshold {}{}",
                          known ? "no head writes next to nothing"
                                : "not known whether every head writes more than next to nothing",
                          c.of_those("head_varied_rel"), label(weakest), with_error(weakest), number(dead),
                          c.beside(c.evidence.of_head(c.evidence.baseline(), "head_varied_rel", weakest.layer,
                                                      weakest.head))),
              known),
        weakest, dead);
}

/// The heads that were taken out, by what that cost the output.
struct Groups {
  Group silent, constant, dormant, needed, half;
  std::vector<std::string> unclear;
};

/// What is known of heads outside the groups goes to `claims`.
Groups group_by_cost(const Case& c, const std::vector<const Row*>& ablated,
                     const std::vector<const Row*>& costs, double dead, std::vector<Claim>& claims) {
  Groups out;
  const std::vector<Side> sides =
      costs.empty() ? std::vector<Side>() : sides_of(costs, c.epsilon_of(*costs.front()));
  std::vector<const Row*> bares, ables;
  for (size_t i = 0; i < ablated.size(); ++i) {
    if (sides[i] != Side::below) continue;
    if (const Row* bare = c.output_cost("-head-bare:" + label(*ablated[i]))) bares.push_back(bare);
    if (const Row* able = c.evidence.of_head("full", "head_able_rel", ablated[i]->layer, ablated[i]->head))
      ables.push_back(able);
  }
  const std::map<const Row*, Side> nothing_of =
                                       by_row(bares, bares.empty() ? 0 : c.epsilon_of(*bares.front())),
                                   could_of = by_row(ables, kAble * dead);
  for (size_t i = 0; i < ablated.size(); ++i) {
    const Row& head = *ablated[i];
    const Claim idle{fmt::format("idle {}", label(head)), answer_of(sides[i], Side::below)};
    if (sides[i] != Side::below) claims.push_back(idle);
    if (sides[i] == Side::unclear)
      out.unclear.push_back(fmt::format("{} ({})", label(head), with_error(*costs[i])));
    if (sides[i] == Side::above) out.needed.add(head, *costs[i]);
    if (sides[i] != Side::below) continue;
    const Row* bare = c.output_cost("-head-bare:" + label(head));
    const Side nothing = bare == nullptr ? Side::unclear : nothing_of.at(bare);
    // A head that could write, and does not: where it looks keeps it quiet on this text, not its maps.
    const Row* able = c.evidence.of_head("full", "head_able_rel", head.layer, head.head);
    const Side could = able == nullptr ? Side::below : could_of.at(able);
    Group& group = could == Side::above     ? out.dormant
                   : nothing == Side::below ? out.silent
                   : nothing == Side::above ? out.constant
                                            : out.half;
    group.add(head, *costs[i]);
    group.claims.push_back(idle);
    group.claims.push_back({fmt::format("silent {}", label(head)), answer_of(nothing, Side::below)});
    if (able != nullptr)
      group.claims.push_back({fmt::format("dormant {}", label(head)), answer_of(could, Side::above)});
    if (could == Side::above) out.dormant.able = std::min(out.dormant.able, able->value);
    if (&group == &out.silent) out.silent.most = std::max(out.silent.most, bare->value);  // said of both
  }
  return out;
}

void say_groups(Case& c, const Groups& g, double dead) {
  say_cost(c, g.silent, "silent on this text",
           "with nothing but its biases in its place, and with its mean, the cost is at most", g.silent.most);
  say_cost(c, g.constant, "constant on this text", "its mean in its place costs at most", g.constant.most);
  if (!g.dormant.heads.empty())
    say_cost(
        c, g.dormant,
        fmt::format(
            "dormant on this text, writing nothing that matters though able to write {} of what the stream "
            "varies or more (threshold {})",
            number(g.dormant.able), number(kAble * dead)),
        "its mean in its place costs at most", g.dormant.most);
  say_cost(c, g.half, "idle on this text, silent or constant", "its mean in its place costs at most",
           g.half.most);
  say_cost(c, g.needed, fmt::format("needed, though varying by less than {} of the stream", number(dead)),
           "with its mean in its place the cost is at least", g.needed.least);
  std::vector<std::string> accepted;
  for (const Group* each : {&g.silent, &g.constant, &g.dormant, &g.half})
    accepted.insert(accepted.end(), each->heads.begin(), each->heads.end());
  if (accepted.size() > 1) together(c, accepted);
}

void say_undecided(Case& c, const Looked& looked, double dead) {
  const bool one = looked.undecided.size() == 1;
  about(c.say("head",
              fmt::format(
                  "candidates, not decided: {} var{} by less than {} of what the stream varies; not known "
                  "whether the output needs {}: run with --ablate",
                  list_of(looked.undecided), one ? "ies" : "y", number(dead), one ? "it" : "them"),
              false),
        *looked.first_undecided, dead);
}

/// What --off was asked for: what the output loses without these heads.
void taken_out(Case& c) {
  for (const std::string_view variant : c.evidence.variants()) {
    const Row* cost = variant.starts_with("-head:") ? c.output_cost(variant) : nullptr;
    if (cost == nullptr) continue;
    std::vector<std::string> heads;
    const std::vector<std::string> parts = split_at_plus(variant.substr(1));
    for (const std::string& part : parts) {
      if (!part.starts_with("head:")) break;
      heads.push_back(part.substr(5));
    }
    if (heads.size() != parts.size()) continue;  // other parts are gone, too
    const double epsilon = c.epsilon_of(*cost);
    const Side s = c.too_short() ? Side::unclear : side(*cost, epsilon);
    Finding& f =
        c.say("head",
              fmt::format("without {} {} is {} (epsilon {}): {}", list_of(heads), cost->metric.str(),
                          with_error(*cost), number(epsilon),
                          s == Side::below   ? "the output stays"
                          : s == Side::above ? "the output changes"
                          : c.too_short()    ? "not known whether it stays, as " + c.short_text()
                                          : "not known whether it stays, " + why_unclear(*cost, "epsilon")),
              s != Side::unclear);
    about(f, *cost, epsilon);
    f.asked = true;
  }
}

void judge_heads(Case& c) {
  taken_out(c);
  const std::vector<const Row*>& rows = c.evidence.all("full", "head_varied_rel");
  if (rows.empty()) {
    c.say("head", "not known: no head_varied_rel was measured, or no two tokens differ", false).measured =
        false;
    return;
  }
  if (c.too_short()) {
    c.say("head", fmt::format("not known: {}", c.short_text()), false);
    return;
  }
  const double dead = c.limit("dead");
  const std::vector<Side> varied = sides_of(rows, dead);
  Looked looked = look_at(c, rows, varied, dead);
  if (looked.ablated.empty() && looked.undecided.empty()) say_weakest(c, rows, varied, dead);
  const Groups groups = group_by_cost(c, looked.ablated, looked.costs, dead, looked.claims);
  say_groups(c, groups, dead);
  if (!groups.unclear.empty())
    c.say("head",
          fmt::format("not known for {}: {}", list_of(groups.unclear),
                      why_unclear(*looked.costs.front(), "epsilon")),
          false);
  if (!looked.undecided.empty()) say_undecided(c, looked, dead);
  auto& told = c.findings.back().claims;
  told.insert(told.end(), looked.claims.begin(), looked.claims.end());
  if (const std::vector<std::string> without = c.heads_without("head_varied_rel"); !without.empty())
    c.say(
        "head",
        fmt::format("not known for {}: the tokens in front of them differ by rounding alone{}",
                    list_of(without), c.could_be_finer() ? "; --dtype float64 tells what is below that" : ""),
        false);
  duplicates(c);
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_heads{
    .order = 50,
    .topic = "head",
    .question = "Which heads could go?",
    .thresholds = {{"dead", 0.01, "share",
                    "a head whose output varies by less than this share of the stream: a candidate"},
                   {"epsilon", 0.001, "nats", "output_kl below this: the output stays"},
                   {"epsilon_error", 0.01, "share",
                    "output_error below this, of a model without a head: the output stays"},
                   {"duplicate", 0.9, "R^2",
                    "share of a head's output that the layer's other heads write, too"}},
    .judge = verdict::judge_heads};

}  // namespace rankscope
