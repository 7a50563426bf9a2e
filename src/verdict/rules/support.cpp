// Which part holds the rank up: the one without which the residual falls while the full network stands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/stats.h"
#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {
// "-skip", "-head:L0H0+skip", but not heads alone: "-head:L0H0+head:L1H0", "-heads-mean:L0H0+L1H0".
bool takes_part_out(std::string_view variant) {
  if (!variant.starts_with('-')) return false;
  const auto is_head = [](std::string_view part) {
    return part.starts_with("head") ||
           (part.size() > 1 && part[0] == 'L' && part[1] >= '0' && part[1] <= '9');
  };
  for (std::string_view rest = variant.substr(1); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('+'));
    if (!is_head(part)) return true;
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  return false;
}

struct Phrase {
  std::string name;
  bool plural;
};

/// "-skip+mlp" as "the skips and the MLP". Parts that leave together are named together.
Phrase phrase(std::string_view variant, bool norm_behind) {
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
    if (part == "mlp" && norm_behind) names.emplace_back("the norm behind it"), plural = true;
  }
  return {fmt::format("{}", fmt::join(names, " and ")), plural || names.size() > 1};
}

/// Two rows of one metric at one place, without the part and with it, and their ratio.
struct Share {
  const Row *without = nullptr, *full = nullptr;
  const Place* place = nullptr;
  double ratio = INFINITY, relative_error = kNone;

  Share() = default;
  Share(const Row& w, const Row& f, const Place& p)
      : without(&w), full(&f), place(&p), ratio(w.value / f.value) {
    relative_error = std::hypot(w.stderr_ / std::max(w.value, 1e-300), f.stderr_ / f.value);
  }
  Side side_of(double threshold) const {
    const int64_t n = std::min(without->n, full->n);
    return is_geometric(without->metric.str()) && ratio > 0
               ? side(std::log(ratio), relative_error, n, std::log(threshold))
               : side(ratio, ratio * relative_error, n, threshold);
  }
};

/// How much of a metric is left without the part, over the places.
struct Left {
  std::string_view name = {};
  Share least, last;     // where least is left, and at the last place
  Share other_last;      // of the other metric there; none where it was not measured
  double slope = kNone;  // of log ratio a layer; none of one place
};

template <class Rows>
Left left_of(const Case& c, std::string_view variant, Rows row) {
  Left out;
  std::vector<double> logs, layers;
  for (const Place& p : c.path.places) {
    const Row *without = row(variant, p), *full = row("full", p);
    if (without == nullptr || full == nullptr || !(full->value > 0)) continue;
    const auto rounding = [&](const Row& r) {
      return is_geometric(r.metric.str()) && r.n > 1 && r.value < c.floor();
    };
    if (rounding(*full)) continue;  // no share of what is not there
    out.last = Share(*without, *full, p);
    if (!rounding(*without)) {
      logs.push_back(std::log(std::max(out.last.ratio, 1e-300)));
      layers.push_back(p.layer);  // --layers may have left some out
    }
    if (out.last.ratio < out.least.ratio) out.least = out.last;
  }
  out.slope = least_squares_slope(layers, logs);
  return out;
}

/// The rank of what tells tokens apart; none of rounding.
const Row* rank_at(const Case& c, std::string_view variant, const Place& p) {
  const Row* residual = c.evidence.at_site(variant, "residual_fro_rel_trimmed", p.site, "content");
  if (residual != nullptr && residual->n > 1 && residual->value < c.floor()) return nullptr;
  return c.evidence.at_site(variant, "effective_rank_centered_rel_trimmed", p.site, "content");
}

/// Where no fixed threshold decides: the share of the full network's residual and rank that is left.
std::optional<Left> least_left(const Case& c, std::string_view variant) {
  Left residual = left_of(c, variant, [&](std::string_view v, const Place&p) { return c.residual(v, p); }),
       rank = left_of(c, variant, [&](std::string_view v, const Place&p) { return rank_at(c, v, p); });
  residual.name = c.residual_name(), rank.name = "centered effective rank";
  const bool by_rank = rank.least.ratio < residual.least.ratio;
  Left& least = by_rank ? rank : residual;
  if (least.least.place == nullptr) return std::nullopt;
  least.other_last = (by_rank ? residual : rank).last;
  return least;
}

/// What is said of one part.
class Support {
 public:
  Support(Case& c, std::string_view variant)
      : c_(c),
        variant_(variant),
        part_(phrase(variant, norm_behind(c.spec))),
        hold_(part_.plural ? "hold" : "holds"),
        them_(part_.plural ? "them" : "it"),
        limit_(c.limit("collapse")) {}

  /// Whether the residual surely falls without it, as judge() would say.
  bool falls_without() {
    if (c_.measured.not_finite.contains(variant_) || shrunk() || c_.too_short()) return false;
    look();
    return first_ != nullptr;
  }

  Claim::Answer judge() {
    // What is finite before the overflow says nothing of what is behind it.
    if (const auto lost = c_.measured.not_finite.find(variant_); lost != c_.measured.not_finite.end())
      return unknown(
          fmt::format("without {} activations are NaN, Inf or too large for their squares at {}{}", them_,
                      lost->second,
                      c_.could_be_finer() ? "; --dtype float64 tells whether that is an overflow" : ""),
          nullptr, true);
    if (const auto small = shrunk())
      return unknown(
          fmt::format("without {} activations shrink to {} at {}, and what is far smaller is zero{}", them_,
                      number(small->first), small->second,
                      c_.could_be_finer() ? "; --dtype float64 follows them further" : ""),
          nullptr, true);
    look();
    if (lowest_ == nullptr) return unknown("no residual was measured with and without", nullptr);
    if (c_.too_short())
      return unknown(fmt::format("the texts are too short; without {} the lowest {} is {} at {} (full: {})",
                                 them_, c_.residual_name(), number(without(*lowest_).value),
                                 c_.path.one(lowest_->layer), number(full(*lowest_).value)),
                     lowest_);
    if (first_ != nullptr) return falls();
    if (told_apart_ != nullptr)
      return unknown(
          fmt::format("without {} the {} is {} at {}, but the massive channels that it leaves out "
                      "tell tokens apart there: their own is {}",
                      them_, c_.residual_name(), c_.residual_text(without(*told_apart_).value),
                      c_.path.one(told_apart_->layer), number(c_.left_out(variant_, *told_apart_)->value)),
          told_apart_);
    if (both_low_ != nullptr)
      return unknown(
          fmt::format("the full network is itself below {} where the one without {} is ({}: {} and {})",
                      number(limit_), them_, c_.path.one(both_low_->layer), number(full(*both_low_).value),
                      c_.residual_text(without(*both_low_).value)),
          both_low_);
    return by_share();
  }

 private:
  static bool norm_behind(const ModelSpec& spec) {
    const BranchSpec* mlp = spec.blocks.empty() ? nullptr : spec.blocks.front().mlp_branch();
    return mlp != nullptr && mlp->behind.there();
  }
  const Row& without(const Place& p) const { return *row(variant_, p); }
  const Row& full(const Place& p) const { return *row("full", p); }

  /// Where tokens, with what they have in common, became so small that squares or further layers underflow.
  std::optional<std::pair<double, std::string>> shrunk() const {
    const double least = c_.could_be_finer() ? 1e-18 : 1e-150;
    for (const Row* r : c_.evidence.all(variant_, "offset_fro")) {
      const Row* differ = c_.evidence.at_site(variant_, "residual_fro", r->site.str(), r->tokens.str());
      const double size = std::hypot(r->value, differ == nullptr ? 0 : differ->value);
      if (size > 0 && size < least) return std::pair(size, r->site.str());
    }
    return std::nullopt;
  }
  bool rounding(const Row& r) const { return r.n > 1 && r.value < c_.floor(); }

  /// The residual there. Where --layers left out the block that it is measured at, what the place itself
  /// shows: with gain and bias, which decides where it is rounding and nowhere else.
  const Row* row(std::string_view variant, const Place& p) const {
    const Row* r = c_.residual(variant, p);
    return r != nullptr ? r : c_.at_place(variant, p);
  }
  bool readable(const Place& p) const {
    const Row *without = row(variant_, p), *full = row("full", p);
    if (without == nullptr || full == nullptr) return false;
    const bool both = c_.residual(variant_, p) != nullptr && c_.residual("full", p) != nullptr;
    return both || rounding(*without) || rounding(*full);
  }

  void look() {
    for (const Place& p : c_.path.places) {
      if (!readable(p)) continue;
      // What is rounding is low, and tokens that are equal to the last bit have no error.
      const auto side_of = [&](const Row& r) { return rounding(r) ? Side::below : side(r, limit_); };
      const Side fallen = side_of(without(p)), standing = side_of(full(p));
      // Massive channels are left out of the residual; where they tell tokens apart, nothing has collapsed.
      const Row* massive = c_.left_out(variant_, p);
      if (fallen == Side::below && massive != nullptr && massive->value >= limit_) {
        if (told_apart_ == nullptr) told_apart_ = &p;
        continue;
      }
      last_ = &p;
      if (lowest_ == nullptr || without(p).value < without(*lowest_).value) lowest_ = &p;
      // Two residuals on two sides of the threshold may be nearly the same.
      const bool less = rounding(without(p)) ||
                        Share(without(p), full(p), p).side_of(c_.limit("collapse_ratio")) == Side::below;
      if (fallen == Side::below && standing == Side::above && less && first_ == nullptr) first_ = &p;
      if (fallen == Side::below && standing == Side::below) both_low_ = &p;
    }
    if (lowest_ == nullptr) lowest_ = told_apart_;
  }

  Claim::Answer unknown(const std::string& why, const Place* p, bool looked = false) {
    Finding& f = c_.say(
        "support", fmt::format("not known whether {} {} the rank up: {}", part_.name, hold_, why), false);
    f.measured = p != nullptr || looked;
    if (p != nullptr) about(f, without(*p), limit_, &full(*p));
    return Claim::Answer::unknown;
  }

  /// The lowest residual is the more telling number, as long as the full network stands there.
  Claim::Answer falls() {
    const Place& shown = side(full(*lowest_), limit_) == Side::above ? *lowest_ : *first_;
    const std::string low = c_.residual_text(without(shown).value);
    const std::string some = in_samples(Share(without(shown), full(shown), shown), limit_, false);
    const std::string way = (shown.layer == first_->layer
                                 ? fmt::format("falls to {} by {}", low, c_.path.one(shown.layer))
                                 : fmt::format("falls below {} by {} and to {} by {}", number(limit_),
                                               c_.path.one(first_->layer), low, c_.path.one(shown.layer))) +
                            (some.empty() ? "" : ", below the threshold" + some);
    // What falls may rise again: then the part is needed where it fell, and not for what comes out.
    const Share end(without(*last_), full(*last_), *last_);
    const std::string text =
        back(end) && back_by_share()
            ? fmt::format(
                  "{} {} the rank up at {}, and not to the end: without {} the {} is {} there{} "
                  "(full: {}; threshold {}) and {} at {} (full: {}; kept {})",
                  part_.name, hold_, c_.path.one(shown.layer), them_, c_.residual_name(), low,
                  some.empty() ? "" : ", below the threshold" + some + ",", number(full(shown).value),
                  number(limit_), number(end.without->value), c_.path.one(end.place->layer),
                  number(end.full->value), number(c_.limit("kept")))
            : fmt::format("{} {} the rank up: without {} the {} {} (full: {}; threshold {})", part_.name,
                          hold_, them_, c_.residual_name(), way, number(full(shown).value), number(limit_));
    about(c_.say("support", text), without(shown), limit_, &full(shown));
    return Claim::Answer::yes;
  }

  /// "in 13 of 16 samples": in how many it is below the threshold; nothing where it is so in all of them, and
  /// where single samples were not kept.
  std::string in_samples(const Share& share, double threshold, bool of_full) const {
    const auto values = [&](const Row& r) {
      return c_.evidence.samples_at(r.variant.str(), r.metric.str(), r.site.str(), r.tokens.str());
    };
    const std::map<int64_t, double> without = values(*share.without), full = values(*share.full);
    int64_t below = 0, all = 0;
    for (const auto& [sample, value] : without) {
      const auto beside = full.find(sample);
      if (beside == full.end()) continue;
      below += value < threshold * (of_full ? beside->second : 1);
      ++all;
    }
    return below == all ? "" : fmt::format(" in {} of {} samples", below, all);
  }

  bool back(const Share& last) const {
    return last.place == nullptr || last.side_of(c_.limit("kept")) == Side::above;
  }
  /// Whether both the residual and its rank are, at the last place, nearly what they are in the full network.
  bool back_by_share() const {
    const std::optional<Left> left = least_left(c_, variant_);
    return left && back(left->last) && back(left->other_last);
  }

  Claim::Answer by_share() {
    const std::optional<Left> left = least_left(c_, variant_);
    if (!left) return unknown("nothing was measured with and without", nullptr);
    const double half = c_.limit("collapse_ratio"), most = c_.limit("kept");
    const Share& least = left->least;
    const bool low = least.side_of(half) == Side::below, kept = least.side_of(most) == Side::above,
               again = low && back_by_share();
    const std::string some = kept ? "" : in_samples(least, half, true);
    const std::string text = fmt::format(
        "without {}, and nothing else removed, {} of the full network's {} is left at {} ({} against {}; "
        "collapse_ratio {}{}, kept {}){}",
        them_, number(least.ratio), left->name, c_.path.one(least.place->layer), with_error(*least.without),
        with_error(*least.full), number(half), some.empty() ? "" : ", less" + some, number(most),
        again ? fmt::format(", and {} at {}", number(left->last.ratio), c_.path.one(left->last.place->layer))
        : std::isnan(left->slope) ? std::string()
                                  : fmt::format(", times {} a layer", number(std::exp(left->slope))));
    // Less than half is left, so more than half rests on the part.
    const char* share = least.ratio < 0.1 ? "nearly all" : "most";
    about(low    ? c_.say("support", fmt::format("{} {} {} of the rank up{}: {}", part_.name, hold_, share,
                                              again ? fmt::format(" at {}, and not to the end",
                                                                     c_.path.one(least.place->layer))
                                                       : "",
                                                 text))
          : kept ? c_.say("support", fmt::format("{} {} not hold the rank up: {}", part_.name,
                                                 part_.plural ? "do" : "does", text))
                 : c_.say("support",
                          fmt::format("not known whether {} {} the rank up: {}", part_.name, hold_, text),
                          false),
          *least.without, low ? half : most, least.full);
    return low ? Claim::Answer::yes : kept ? Claim::Answer::no : Claim::Answer::unknown;
  }

  Case& c_;
  std::string_view variant_;
  Phrase part_;
  std::string hold_, them_;
  double limit_;
  const Place *first_ = nullptr, *lowest_ = nullptr, *last_ = nullptr, *both_low_ = nullptr,
              *told_apart_ = nullptr;
};

void judge_support(Case& c) {
  bool any = false;
  for (const std::string_view variant : c.evidence.variants()) {
    // A head is one of many: it is named where the rank rests on it, and not where it does not.
    if (!takes_part_out(variant) && !(variant.starts_with("-head:") && Support(c, variant).falls_without()))
      continue;
    any = true;
    const Claim::Answer answer = Support(c, variant).judge();
    c.findings.back().claims = {{fmt::format("holds {}", printable(variant)), answer}};
  }
  if (!any)
    c.say("support", "not known which part holds the rank up: scan with --off skip", false).measured =
        c.evidence.any("full", "residual_fro_rel_normed") != nullptr ||
        c.evidence.any("full", "residual_fro_rel_trimmed") != nullptr;
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_support{
    .order = 30,
    .topic = "support",
    .question = "Which part holds the rank up?",
    .thresholds =
        {{"collapse", 0.1, "share",
          "normed residual below this: the tokens of the layer are nearly all alike"},
         {"kept", 0.8, "ratio",
          "more than this share of the full network's normed residual and rank left: the part does not "
          "hold them up"}},
    .judge = verdict::judge_support};

}  // namespace rankscope
