// Heads whose queries nearly all look at one key, by a margin that does not depend on the length of the text.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numbers>

#include "verdict/rule.h"
#include "verdict/sink_key.h"

namespace rankscope::verdict {
namespace {

/// What kind of key it is: the share of samples decides.
struct Kind {
  std::string_view name;  // "first", "position", ...; empty: another key in each sample
  std::string words;
  bool always = false;  // in nearly every sample
};

Kind kind_of(const Case& c, const Row& r) {
  const auto value = [&](std::string_view metric) {
    const Row* row = c.evidence.of_head("full", metric, r.layer, r.head);
    return row == nullptr ? 0.0 : row->value;
  };
  const SinkShares shares{value("sink_first"), value("sink_last"), value("sink_special"),
                          value("sink_key_position_share"), value("sink_key_token_share")};
  const std::string at = fmt::format("position {}", number(value("sink_key_position"))),
                    is = fmt::format("token id {}", number(value("sink_key_token")));
  const std::string_view name = sink_key(shares);
  // Of what is not so in nearly every sample, in how many it is.
  const auto often = [&](double share, std::string words, std::string_view wherever = "") -> Kind {
    const bool always = share >= kNearlyAllSamples;
    words += always ? std::string(wherever) : fmt::format(" in {:.0f} % of the samples", 100 * share);
    return {name, words, always};
  };
  if (name == "first") return often(shares.first, "the first token");
  if (name == "last") return often(shares.last, "the last token");
  if (name == "special") return often(shares.special, "special tokens");
  if (name == "position") return often(shares.position, at);
  if (name == "token") return often(shares.token, is, ", wherever it stands");
  const double most = std::max(shares.position, shares.token);
  if (most * static_cast<double>(r.n) < 1.5) return {"", "a key that is another one in each sample"};
  return {"", fmt::format("keys that change from sample to sample, {} in {:.0f} % of them",
                          shares.position >= shares.token ? at : is, 100 * most)};
}

// From here on a margin may be a bound: 1 - a is taken as 2^-44 at least (lenses/margins.cpp), and a is
// below 1.
constexpr double kBound = 43 * std::numbers::ln2;

std::string described(const Case& c, const Row& r) {
  const Kind kind = kind_of(c, r);
  std::string text = fmt::format("{} with margin {}{} nats on {}", label(r),
                                 r.value > kBound ? "of at least " : "", with_error(r), kind.words);
  if (const Row* seen = c.evidence.of_head("full", "sink_key_seen", r.layer, r.head);
      seen != nullptr && seen->value < kNearlyAllSamples)
    text += kind.always ? fmt::format(", which {:.0f} % of the queries see", 100 * seen->value)
                        : fmt::format(", each sample's seen by {:.0f} % of its queries in the mean",
                                      100 * seen->value);
  text += fmt::format(" (threshold {}", number(c.limit("sink_margin")));
  if (const Row* null = c.evidence.of_head("full", "sink_margin_null", r.layer, r.head))
    text += fmt::format("; keys in random order: {}", number(null->value));
  // Samples in which margins are bounds have no slope; the others would not speak for them.
  if (const Row* slope = c.evidence.of_head("full", "sink_slope", r.layer, r.head);
      slope != nullptr && (slope->n == r.n || r.value < kBound / 2))
    text += fmt::format("; slope in log length {}", with_error(*slope));
  if (const Row* slope = c.evidence.of_head("full", "sink_slope_lengths", r.layer, r.head))
    text += fmt::format("; slope in log length {}, over halved texts", with_error(*slope));
  if (const Row* scatter = c.evidence.of_head("full", "sink_scatter", r.layer, r.head);
      scatter != nullptr && r.value < kBound)
    text += fmt::format("; half of the queries are within {} of the median", number(scatter->value));
  if (const Row* value = c.evidence.of_head("full", "sink_drained", r.layer, r.head))
    text += fmt::format("; its value writes {} of what others do", with_error(*value));
  if (const Row* mass = c.evidence.of_head("full", "sink_key_mass", r.layer, r.head))
    text += fmt::format("; mass {}{} at this length", number(mass->value),
                        kind.always ? "" : " of each sample's key in the mean,");
  return text + ")";
}

// A head that is a sink in fewer samples than the one share, and in as many as the other, is one in some
// samples and not in others, whatever its mean is: more samples would not make it one or the other.
constexpr double kMostSamples = 0.75, kSomeSamples = 0.1;

/// In how many samples a head's margin is above the limit; nothing where single samples were not kept.
struct InSamples {
  size_t above = 0, all = 0;
  bool in_most() const {
    return all > 0 && static_cast<double>(above) >= kMostSamples * static_cast<double>(all);
  }
  bool in_some() const {
    return above > 1 && static_cast<double>(above) >= kSomeSamples * static_cast<double>(all);
  }
};

/// Of every head of a variant, in the order of its rows: whether it is a sink.
struct Decided {
  bool by_sample = false;          // whether single samples were kept
  std::vector<Side> sides;         // unclear, too, where the mean is above and most samples are not
  std::vector<InSamples> samples;  // of heads that are sinks in some samples; all = 0 of the others
};

Decided decide(const Case& c, std::string_view variant, const std::vector<const Row*>& rows, double limit) {
  const auto samples = c.evidence.samples_of_heads(variant, "sink_margin");
  Decided out{!samples.empty(), sides_of(rows, limit), std::vector<InSamples>(rows.size())};
  for (size_t i = 0; i < rows.size(); ++i) {
    // What the largest of many keys reaches by chance is no sink, however large.
    const Row* null = c.evidence.of_head(variant, "sink_margin_null", rows[i]->layer, rows[i]->head);
    if (null != nullptr && rows[i]->value <= null->value && null->value > limit) {
      out.sides[i] = Side::below;
      continue;
    }
    const auto kept = samples.find({rows[i]->layer, rows[i]->head});
    if (kept == samples.end()) continue;
    const std::vector<double>& margins = kept->second;
    const InSamples in{
        static_cast<size_t>(std::ranges::count_if(margins, [&](double m) { return m > limit; })),
        margins.size()};
    const bool below = out.sides[i] == Side::below;
    if (in.in_most() && !below) continue;
    if (!below) out.sides[i] = Side::unclear;
    if (in.in_some() || rows[i]->value > limit) out.samples[i] = in;
  }
  return out;
}

void say_without(Case& c) {
  if (const std::vector<std::string> without = c.heads_without("sink_margin"); !without.empty())
    c.say("sink",
          fmt::format("not known for {}: a margin needs shares of attention, and a key that a quarter of the "
                      "queries see",
                      list_of(without)),
          false);
}

void say_not_measured(Case& c) {
  const bool windows = std::ranges::all_of(c.spec.blocks, [&](const BlockSpec& b) {
    const BranchSpec* a = b.attention_branch();
    return a == nullptr || (a->attention()->window > 0 && a->attention()->window < c.measured.shortest);
  });
  c.say("sink",
        fmt::format(
            "not known: no sink_margin was measured{}",
            windows ? "; it needs a key that a quarter of the queries see, and windows are short" : ""),
        false)
      .measured = false;
}

/// What is so of every head, and whether its sink is of each kind.
void claim_sink(std::vector<Claim>& claims, const Case& c, const Row& head, Side side) {
  claims.push_back({fmt::format("sink {}", label(head)), answer_of(side, Side::above)});
  if (side != Side::above) return;
  const Kind on = kind_of(c, head);
  for (const std::string_view kind : kSinkKeys)
    claims.push_back({fmt::format("sink kind {}:{}", label(head), kind),
                      kind == on.name ? Claim::Answer::yes : Claim::Answer::no});
}

/// `mixed`: the heads that are sinks in some samples, by their place in `rows`.
void say_mixed(Case& c, const std::vector<const Row*>& rows, const std::vector<InSamples>& samples,
               std::vector<size_t> mixed, double limit) {
  std::vector<Claim> claims;
  for (const size_t i : mixed)
    claims.push_back({fmt::format("sink in some {}", label(*rows[i])), Claim::Answer::yes});
  std::ranges::stable_sort(mixed, std::greater{}, [&](size_t i) { return samples[i].above; });
  std::vector<std::string> heads;
  for (const size_t i : mixed)
    heads.push_back(fmt::format("{} in {} of {}{}", label(*rows[i]), samples[i].above, samples[i].all,
                                heads.empty() ? " samples" : ""));
  Finding& some = c.say("sink", fmt::format("sinks in some samples and not in others, by margins above {} "
                                            "nats: {}",
                                            number(limit), list_of(heads)));
  about(some, *rows[mixed.front()], limit);
  some.claims = std::move(claims);
}

// "; baseline: 12": how many the baseline has.
std::string sinks_beside(const Case& c, double limit) {
  const auto& others = c.evidence.all(c.evidence.baseline(), "sink_margin");
  if (others.empty()) return "";
  const std::vector<Side> theirs = decide(c, c.evidence.baseline(), others, limit).sides;
  return fmt::format("; {}: {}", c.evidence.baseline_name(),
                     std::count(theirs.begin(), theirs.end(), Side::above));
}

void judge_sinks(Case& c) {
  const double limit = c.limit("sink_margin");
  const std::vector<const Row*>& rows = c.evidence.all("full", "sink_margin");
  if (rows.empty()) return say_not_measured(c);
  const Row& largest = **std::max_element(rows.begin(), rows.end(),
                                          [](const Row* a, const Row* b) { return a->value < b->value; });
  if (const std::string few = c.too_few(largest); !few.empty()) {
    about(c.say("sink", fmt::format("not known: {}; the strongest is {}", few, described(c, largest)), false),
          largest, limit);
    return;
  }
  const Decided decided = decide(c, "full", rows, limit);
  std::map<int, int> by_layer;
  std::vector<std::string> unclear;
  std::vector<size_t> mixed;
  std::vector<Claim> claims;
  const Row* strongest = nullptr;  // of those that are sinks, or of all where none is
  int count = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (decided.samples[i].all > 0)
      mixed.push_back(i);
    else if (decided.sides[i] == Side::unclear)
      unclear.push_back(label(*rows[i]));
    if (decided.sides[i] == Side::above) {
      ++by_layer[rows[i]->layer], ++count;
      if (strongest == nullptr || rows[i]->value > strongest->value) strongest = rows[i];
    }
    claim_sink(claims, c, *rows[i], decided.sides[i]);
  }
  std::vector<std::string> layers;
  for (const auto& [layer, n] : by_layer) layers.push_back(fmt::format("{} in layer {}", n, layer));
  if (strongest == nullptr) strongest = &largest;
  // A few samples far below the limit may take the mean of a head below it that is a sink in most of them.
  const bool means = std::ranges::any_of(mixed, [&](size_t i) { return decided.samples[i].in_most(); });
  const char* const by = means ? " by its mean and" : "";
  const std::string none = !unclear.empty() ? "clearly a sink"
                           : !mixed.empty() ? fmt::format("a sink{} in three quarters of the samples", by)
                                            : "a sink";
  const std::string in_samples =
      !decided.by_sample
          ? ""
          : fmt::format("{} in three quarters of the samples or more", means ? " by their means and" : "");
  const std::string strong =
      fmt::format("the strongest is {}{}", described(c, *strongest), sinks_beside(c, limit));
  Finding& f = c.say("sink",
                     count == 0 ? fmt::format("no head is {}{}: {}", none, c.of_those("sink_margin"), strong)
                                : fmt::format("{} of {} heads are sinks{} ({}){}: {}", count, rows.size(),
                                              in_samples, list_of(layers), c.of_those("sink_margin"), strong),
                     unclear.size() < rows.size());
  about(f, *strongest, limit);
  f.claims = std::move(claims);
  if (!mixed.empty()) say_mixed(c, rows, decided.samples, std::move(mixed), limit);
  if (!unclear.empty())
    c.say(
        "sink",
        fmt::format("not known for {}: margins too near {} nats for their errors; more samples would decide",
                    list_of(unclear), number(limit)),
        false);
  say_without(c);
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_sinks{
    .order = 40,
    .topic = "sink",
    .question = "Which heads look at one key, whatever the query?",
    .thresholds = {{"sink_margin", 3, "nats",
                    "margin of one key over the mean of the others that makes a head a sink"},
                   {"sink", 0.3, "share", "attention on one key, above uniform, that sink_ratio counts by"}},
    .judge = verdict::judge_sinks};

}  // namespace rankscope
