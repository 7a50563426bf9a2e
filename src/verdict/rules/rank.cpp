// How much of their width the heads' maps use.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "parts/program.h"
#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {
constexpr double kOneDirection = 1.05;  // effective rank of a map that has no second direction to speak of

/// The most rank that a head's map can have: it goes through the head, from and to the stream, and where
/// there is one through a latent, each of which may be the narrowest.
int64_t most_rank(const ModelSpec& spec, const BlockSpec& block, int64_t head_width, const char* latent) {
  const BranchSpec& branch = *block.attention_branch();
  const bool may = std::ranges::any_of(part_named(branch.part.name).options,
                                       [&](const PartOption& o) { return o.name == latent; });
  const auto width = may ? static_cast<int64_t>(option_of(branch.part, latent)) : 0;
  return std::min({head_width, spec.width, width > 0 ? width : head_width});
}

template <class Width>
void low_rank(Case& c, std::string_view metric, std::string_view map, Width width) {
  const Row* lowest = nullptr;
  double lowest_share = INFINITY;
  int64_t lowest_width = 0;
  std::vector<std::string> low, fallen;
  std::vector<Claim> claims;
  size_t heads = 0;
  const Row *most_fallen = nullptr, *from = nullptr;
  const double half = c.limit("collapse_ratio");
  double least_ratio = half;
  for (const Row* r : c.evidence.all("full", metric)) {
    if (r->layer < 0 || r->layer >= c.spec.depth()) continue;
    const int64_t d = width(c.spec.blocks[static_cast<size_t>(r->layer)]);
    if (d <= 0) continue;
    ++heads;
    const double share = r->value / static_cast<double>(d);
    // Of narrow heads the share of a map of rank one may be above any threshold.
    const bool yes = share < c.limit("low_rank") || (d > 1 && r->value < kOneDirection);
    if (yes) low.push_back(label(*r));
    const Row* before = c.evidence.of_head(c.evidence.baseline(), metric, r->layer, r->head);
    // A head that is too narrow for so much has lost nothing.
    const bool could = before != nullptr && half * before->value <= static_cast<double>(d);
    if (const double left = could ? r->value / before->value : kNone; left < half) {
      fallen.push_back(label(*r));
      if (left < least_ratio) most_fallen = r, from = before, least_ratio = left;
    }
    claims.push_back(
        {fmt::format("low {} {}", map, label(*r)), yes ? Claim::Answer::yes : Claim::Answer::no});
    if (share < lowest_share) lowest = r, lowest_share = share, lowest_width = d;
  }
  if (lowest == nullptr) {
    c.say("rank", fmt::format("not known for the {} maps: no {} was measured", map, metric), false).measured =
        false;
    return;
  }
  const Row* baseline = c.evidence.of_head(c.evidence.baseline(), metric, lowest->layer, lowest->head);
  const bool narrow = c.limit("low_rank") * static_cast<double>(lowest_width) < kOneDirection;
  const std::string number_of =
      fmt::format("{} with effective rank {} of {} (share {}, threshold {}{}{})", label(*lowest),
                  number(lowest->value), lowest_width, number(lowest_share), number(c.limit("low_rank")),
                  narrow ? " or rank one" : "", c.beside(baseline));
  Finding& f = low.empty()
                   ? c.say("rank", fmt::format("no {} map is low in rank: the lowest is {}", map, number_of))
                   : c.say("rank", fmt::format("{} of {} {} maps are low in rank ({}): the lowest is {}",
                                               low.size(), heads, map, list_of(low), number_of));
  about(f, *lowest, c.limit("low_rank"), baseline);
  f.claims = std::move(claims);
  if (fallen.empty() || c.evidence.baseline() != "baseline") return;
  Finding& lost =
      c.say("rank",
            fmt::format("{} of {} {} maps have less than {} of the effective rank that they have in {} ({}): "
                        "most is lost by {}, {} of {}",
                        fallen.size(), heads, map, number(half), c.evidence.baseline_name(), list_of(fallen),
                        label(*most_fallen), number(most_fallen->value), number(from->value)));
  about(lost, *most_fallen, half * from->value, from);
  lost.claims = {{fmt::format("{} rank lost", map), Claim::Answer::yes}};
}

/// The scores themselves: what the maps make of these tokens, without what softmax does not see. Low beside
/// random initialisation, which has the same width, texts and mask.
void low_scores(Case& c, const std::vector<const Row*>& rows, bool others) {
  const double limit = c.limit("low_scores");
  std::vector<Row> ratios;
  std::vector<const Row*> tested, own;
  std::vector<std::string> as_low_at_random;
  for (const Row* r : rows)
    if (const Row* random = c.evidence.of_head("null:init", "logit_rank", r->layer, r->head);
        random != nullptr) {
      if (random->value * limit <= 1) {  // no rank is below 1
        as_low_at_random.push_back(label(*r));
        continue;
      }
      Row ratio = *r;
      ratio.value = r->value / random->value;
      ratio.stderr_ = ratio.value * std::hypot(r->stderr_ / r->value, random->stderr_ / random->value);
      ratio.n = std::min(r->n, random->n);
      ratios.push_back(std::move(ratio));
      own.push_back(r);
    }
  const auto lowest_of = [](const std::vector<const Row*>& all) {
    return *std::min_element(all.begin(), all.end(),
                             [](const Row* a, const Row* b) { return a->value < b->value; });
  };
  // Distances between tokens alone, of ALiBi say, are scores of next to rank one whatever has been learned.
  const std::string no_ratio = fmt::format(
      "those of random initialisation have themselves a logit_rank of {} or less", number(1 / limit));
  if (ratios.empty()) {
    const Row& least = *lowest_of(rows);
    about(c.say("rank",
                fmt::format("not known whether {}scores are low in rank{}: the lowest are those of {} with "
                            "logit_rank {}, and {}",
                            others ? "other heads' " : "", c.of_those("logit_rank"), label(least),
                            with_error(least),
                            as_low_at_random.empty()
                                ? "there is no random initialisation to hold it against; scan with --null"
                                : no_ratio),
                false),
          least, limit);
    return;
  }
  for (const Row& r : ratios) tested.push_back(&r);
  const std::vector<Side> sides = sides_of(tested, limit);
  std::vector<std::string> low, unclear;
  std::vector<Claim> claims;
  size_t lowest = 0;
  for (size_t i = 0; i < ratios.size(); ++i) {
    if (ratios[i].value < ratios[lowest].value) lowest = i;
    if (sides[i] == Side::below) low.push_back(label(*own[i]));
    if (sides[i] == Side::unclear) unclear.push_back(label(*own[i]));
    claims.push_back({fmt::format("low scores {}", label(*own[i])), answer_of(sides[i], Side::below)});
  }
  const std::string text = fmt::format(
      "the lowest are those of {} with logit_rank {}, {} of random initialisation's (threshold {})",
      label(*own[lowest]), with_error(*own[lowest]), with_error(ratios[lowest]), number(limit));
  const std::string why = why_unclear(ratios.front(), number(limit));
  // Early queries see few keys, so a causal head is read where it looks far back.
  const char* const where = c.spec.causal() ? " where later tokens read earlier ones" : "";
  Finding& f =
      unclear.size() < ratios.size()
          ? low.empty()
                ? c.say("rank",
                        fmt::format("no {}head's scores are {}low in rank{}{}: {}",
                                    others || !as_low_at_random.empty() ? "other " : "",
                                    unclear.empty() ? "" : "clearly ", where, c.of_those("logit_rank"), text))
                : c.say("rank",
                        fmt::format("the scores of {} of {} heads{} are low in rank{} ({}): {}; --rank "
                                    "qk=auto tells what rank the output needs",
                                    low.size(), ratios.size(), c.of_those("logit_rank"), where, list_of(low),
                                    text))
          : c.say("rank",
                  fmt::format("not known whether any {}head's scores are low in rank{}{}: {}; {}",
                              others ? "other " : "", where, c.of_those("logit_rank"), text, why),
                  false);
  about(f, *own[lowest], limit);
  f.claims = std::move(claims);
  if (!as_low_at_random.empty())
    c.say("rank", fmt::format("not known for the scores of {}: {}", list_of(as_low_at_random), no_ratio),
          false);
  if (!unclear.empty() && unclear.size() < ratios.size())
    c.say("rank", fmt::format("not known for the scores of {}: {}", list_of(unclear), why), false);
}

/// Heads that give every key the same score have no rank of scores at all. Whether there are any.
bool equal_scores(Case& c) {
  std::vector<std::string> equal;
  std::vector<Claim> claims;
  const Row* first = nullptr;
  for (const Row* r : c.evidence.all("full", "logit_rms"))
    if (r->head >= 0 && r->value == 0) {
      if (first == nullptr) first = r;
      equal.push_back(label(*r));
      claims.push_back({fmt::format("low scores {}", label(*r)), Claim::Answer::yes});
    }
  if (first == nullptr) return false;
  Finding& f = c.say("rank", fmt::format("{} give{} every key the same score on this text: logit_rms 0",
                                         list_of(equal), equal.size() == 1 ? "s" : ""));
  about(f, *first, 0);
  f.claims = std::move(claims);
  return true;
}

/// Heads to which nearly every key is as good as every other: what they read is alike, or they are nearly
/// zero.
void flat_scores(Case& c) {
  std::vector<const Row*> rows;
  for (const Row* r : c.evidence.all("full", "logit_rms"))
    if (r->head >= 0 && r->value > 0) rows.push_back(r);
  if (rows.empty() || c.too_short()) return;
  const std::vector<Side> sides = sides_of(rows, c.limit("flat_scores"));
  std::vector<std::string> flat;
  std::vector<Claim> claims;
  const Row* most = nullptr;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (sides[i] != Side::below) continue;
    flat.push_back(label(*rows[i]));
    claims.push_back({fmt::format("flat scores {}", label(*rows[i])), Claim::Answer::yes});
    if (most == nullptr || rows[i]->value > most->value) most = rows[i];
  }
  if (flat.empty()) return;
  Finding& f =
      c.say("rank",
            fmt::format("{} give{} every key nearly the same score on this text, so that attention there is "
                        "all but uniform: logit_rms {} at most (threshold {})",
                        list_of(flat), flat.size() == 1 ? "s" : "", with_error(*most),
                        number(c.limit("flat_scores"))));
  about(f, *most, c.limit("flat_scores"));
  f.claims = std::move(claims);
}

void judge_rank(Case& c) {
  const bool equal = equal_scores(c);
  flat_scores(c);
  if (const auto& scores = c.evidence.all("full", "logit_rank"); !scores.empty())
    low_scores(c, scores, equal);
  // Scores are of these tokens; a map that lost its rank is one whatever they are.
  if (c.evidence.all("full", "logit_rank").empty() || !c.evidence.all("full", "qk_effective_rank").empty())
    low_rank(c, "qk_effective_rank", "QK",
             [&](const BlockSpec& b) { return most_rank(c.spec, b, b.attention().d_qk, "q_rank"); });
  low_rank(c, "ov_effective_rank", "OV",
           [&](const BlockSpec& b) { return most_rank(c.spec, b, b.attention().d_v, "kv_rank"); });
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_rank{
    .order = 60,
    .topic = "rank",
    .question = "How much of their width do the heads' maps use?",
    .thresholds = {{"flat_scores", 0.05, "nats",
                    "logit_rms below this: a query gives all of its keys nearly the same weight"},
                   {"low_scores", 0.5, "ratio", "logit_rank below this share of random initialisation's"},
                   {"low_rank", 0.1, "share",
                    "effective rank of a QK or OV map below this share of the rank it could have, or of one "
                    "direction"}},
    .judge = verdict::judge_rank};

}  // namespace rankscope
