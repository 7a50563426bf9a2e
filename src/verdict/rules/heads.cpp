// Heads that could go: candidates write little, and what the output loses without them decides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {

void together(Case& c, const std::vector<std::string>& accepted, double worst);

/// Candidates write little; whether they matter is decided by what the output loses without them.
void ablated(Case& c, const std::vector<const Row*>& candidates, const Row& weakest) {
  std::vector<std::string> dead, needed, unclear, undecided, redundant;
  double worst = 0, least_needed = INFINITY, worst_redundant = 0;
  const Row* first_undecided = nullptr;
  const auto kl_of = [&](const std::string& head) { return c.evidence.any("-head:" + head, "output_kl"); };
  for (const Row* r : c.evidence.all("full", "head_output_rel")) {
    const std::string head = label(*r);
    const Row* kl = kl_of(head);
    const bool candidate = r->value < c.limit("dead");
    if (kl == nullptr) {
      if (!candidate) continue;
      undecided.push_back(fmt::format("{} ({})", head, number(r->value)));
      if (first_undecided == nullptr) first_undecided = r;
      continue;
    }
    const Side s = side(*kl, c.limit("epsilon"));
    if (s == Side::unclear) unclear.push_back(fmt::format("{} ({})", head, with_error(*kl)));
    if (s == Side::above && candidate) {
      needed.push_back(head);
      least_needed = std::min(least_needed, kl->value);
    }
    if (s == Side::below) {
      (candidate ? dead : redundant).push_back(head);
      double& largest = candidate ? worst : worst_redundant;
      largest = std::max(largest, kl->value);
    }
  }
  if (candidates.empty())
    about(c.say("head",
                fmt::format(
                    "no head is dead: the weakest, {}, writes {} of the residual stream's norm, threshold "
                    "{}{}",
                    label(weakest), with_error(weakest), number(c.limit("dead")),
                    c.beside(c.evidence.of_head(c.evidence.baseline(), "head_output_rel", weakest.layer,
                                                weakest.head)))),
          weakest, c.limit("dead"));
  const auto costs = [&](const std::vector<std::string>& heads, std::string_view what, double largest) {
    Finding& f = c.say(
        "head", fmt::format("{} {} {}: taken out alone, {} costs at most output_kl {} (epsilon {}; full: 0)",
                            list_of(heads), heads.size() == 1 ? "is" : "are", what,
                            heads.size() == 1 ? "it" : "each", number(largest), number(c.limit("epsilon"))));
    f.value = largest;
    f.threshold = c.limit("epsilon");
  };
  if (!dead.empty()) costs(dead, "dead", worst);
  if (!redundant.empty()) costs(redundant, "redundant", worst_redundant);
  std::vector<std::string> accepted = dead;
  accepted.insert(accepted.end(), redundant.begin(), redundant.end());
  if (accepted.size() > 1) together(c, accepted, std::max(worst, worst_redundant));
  if (!needed.empty()) {
    Finding& f = c.say(
        "head", fmt::format("{} {} little (below {} of the residual stream's norm) but {} needed: without {} "
                            "output_kl is at least {} (epsilon {}; full: 0)",
                            list_of(needed), needed.size() == 1 ? "writes" : "write", number(c.limit("dead")),
                            needed.size() == 1 ? "is" : "are", needed.size() == 1 ? "it" : "any of them",
                            number(least_needed), number(c.limit("epsilon"))));
    f.value = least_needed;
    f.threshold = c.limit("epsilon");
  }
  if (!unclear.empty())
    c.say("head",
          fmt::format(
              "not known for {}: output_kl within two standard errors of epsilon {}; more samples would "
              "decide",
              list_of(unclear), number(c.limit("epsilon"))),
          false);
  if (!undecided.empty())
    about(c.say("head",
                fmt::format(
                    "candidates, not decided: {} write{} less than {} of the residual stream's norm; not "
                    "known whether the output needs {}: run with --ablate",
                    list_of(undecided), undecided.size() == 1 ? "s" : "", number(c.limit("dead")),
                    undecided.size() == 1 ? "it" : "them"),
                false),
          *first_undecided, c.limit("dead"));
}

void together(Case& c, const std::vector<std::string>& accepted, double worst) {
  for (const std::string_view variant : c.evidence.variants()) {
    const Row* kl = variant.starts_with("-heads:") ? c.evidence.any(variant, "output_kl") : nullptr;
    if (kl == nullptr) continue;
    const size_t count = static_cast<size_t>(std::count(variant.begin(), variant.end(), '+')) + 1;
    const Side s = side(*kl, c.limit("epsilon"));
    const std::string cost = fmt::format("output_kl {} (epsilon {}; at most {} alone; full: 0)",
                                         with_error(*kl), number(c.limit("epsilon")), number(worst));
    Finding& f =
        s == Side::below ? c.say("head", fmt::format("these {} heads can go together: {}", count, cost))
        : s == Side::above
            ? c.say("head", fmt::format("these {} heads cannot all go: together they cost {}, so they stand "
                                        "in for each other",
                                        count, cost))
            : c.say("head", fmt::format("not known whether these {} heads can go together: {}", count, cost),
                    false);
    about(f, *kl, c.limit("epsilon"));
    return;
  }
  c.say("head",
        fmt::format("not known whether these {} heads can go together: run with --ablate", accepted.size()),
        false);
}

void judge_heads(Case& c) {
  std::vector<const Row*> candidates;
  const Row* weakest = nullptr;
  for (const Row* r : c.evidence.all("full", "head_output_rel")) {
    if (weakest == nullptr || r->value < weakest->value) weakest = r;
    if (r->value < c.limit("dead")) candidates.push_back(r);
  }
  if (weakest == nullptr) {
    c.say("head", "not known: no head_output_rel was measured", false).measured = false;
    return;
  }
  ablated(c, candidates, *weakest);
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_heads{
    .order = 50,
    .topic = "head",
    .question = "Which heads could go?",
    .thresholds = {{"dead", 0.01, "share",
                    "head output over residual stream below this: a head that may be dead"},
                   {"epsilon", 0.001, "nats", "output_kl below this: taking the part out changes nothing"}},
    .judge = verdict::judge_heads};

}  // namespace rankscope
