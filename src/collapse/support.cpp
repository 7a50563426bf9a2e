// What each part does to the last residual, read off pairs of variants that differ in it alone. Everything is
// in decimal logarithms: what split arithmetic follows is far below the least double.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "collapse/parts.h"
#include "spec/edit.h"

namespace rankscope {
namespace {

constexpr double kMuch = 2;  // a factor of the residual

// 10 to the power of x, in digits that a reader takes in.
std::string power_text(double x) {
  return std::abs(x) < 100 || std::isinf(x) ? fmt::format("{:.2g}", std::pow(10.0, x))
                                            : fmt::format("10^{:.5g}", x);
}

struct Pair {
  const CollapseVariant *with, *without;
  double held, fallen;  // logarithms of the two last residuals, the floor where they are below it
  double ratio() const { return held == fallen ? 0 : held - fallen; }
};

// The median of the ratios themselves, from sorted pairs: between two in the middle it is not that of their
// logarithms.
double median_ratio(const std::vector<Pair>& sorted) {
  const double low = sorted[(sorted.size() - 1) / 2].ratio(), high = sorted[sorted.size() / 2].ratio();
  return low == high ? low : high + std::log10((1 + std::pow(10.0, low - high)) / 2);
}

struct Pairs {
  std::vector<Pair> all;
  size_t lost = 0;  // of one of the two the arithmetic does not hold the numbers to the end
};

// How a part is spoken of.
struct Name {
  std::string what;
  bool many = false;
};

class Support {
 public:
  Support(const ModelSpec& spec, const std::vector<CollapseVariant>& variants, const CollapseArithmetic& how,
          const ResultTable& table)
      : spec_(spec), variants_(variants), how_(how), table_(table), floor_(std::log10(how.floor)) {}

  /// Nothing where no two networks differ in that part: --off took it out of all.
  template <class Has, class Remove>
  std::optional<Finding> of(const Name& part, Has has, Remove remove) const {
    Pairs found = pairs(has, remove);
    if (found.all.empty() && found.lost == 0) return std::nullopt;
    const size_t at_floor =
        std::erase_if(found.all, [&](const Pair& p) { return std::max(p.held, p.fallen) <= floor_ + 1; });
    std::ranges::sort(found.all, {}, &Pair::ratio);
    return found.all.empty() ? nothing(part, at_floor, found.lost) : moved(part, found);
  }

 private:
  // Logarithm of the last residual; nothing where the variant was not followed to the end. Where every token
  // is zero there is no relative one: they are all alike, unless they became zero by shrinking below what
  // this arithmetic holds.
  std::optional<double> last_residual(const std::string& variant) const {
    const int depth = static_cast<int>(spec_.depth());
    const auto at = [&](const char* metric) {
      return table_.find(variant, metric, collapse_layer(depth), -1, "all", collapse_site(depth));
    };
    if (const Row* log = at("residual_l1inf_rel_log10"); log != nullptr && std::isfinite(log->value))
      return log->value;
    if (const Row* relative = at("residual_l1inf_rel")) return std::log10(relative->value);
    const Row* absolute = at("residual_l1inf");
    const bool zero = absolute != nullptr && absolute->value == 0;
    return zero && !has_shrunk(variant) ? std::optional(-INFINITY) : std::nullopt;
  }

  // Whether residuals on the way were small beyond what tells tokens apart: their squares are no numbers.
  bool has_shrunk(const std::string& variant) const {
    const double least = std::sqrt(how_.name == "float32" ? std::numeric_limits<float>::min()
                                                          : std::numeric_limits<double>::min());
    for (int depth = 0; depth < static_cast<int>(spec_.depth()); ++depth) {
      const Row* r =
          table_.find(variant, "residual_l1inf", collapse_layer(depth), -1, "all", collapse_site(depth));
      if (r != nullptr && r->value > 0 && r->value < least) return true;
    }
    return false;
  }

  template <class Has, class Remove>
  Pairs pairs(Has has, Remove remove) const {
    Pairs out;
    for (const CollapseVariant& v : variants_) {
      if (!has(v)) continue;
      CollapseVariant other = v;
      remove(other);
      for (const CollapseVariant& w : variants_) {
        other.name = w.name, other.spec = w.spec;
        if (!(other == w)) continue;
        const std::optional<double> held = last_residual(v.name), fallen = last_residual(w.name);
        if (held && fallen)
          out.all.push_back({&v, &w, std::max(*held, floor_), std::max(*fallen, floor_)});
        else
          ++out.lost;
      }
    }
    return out;
  }

  Finding nothing(const Name& part, size_t at_floor, size_t lost) const {
    const std::string floor = fmt::format("end at {}", floor_text());
    const std::string overflow =
        how_.name == "float32"
            ? "have a network whose numbers float32 does not hold to the end (--arithmetic float64 may)"
            : fmt::format("have a network whose numbers {} does not hold to the end", how_.name);
    const std::string why = lost == 0       ? "all " + floor
                            : at_floor == 0 ? "all " + overflow
                                            : fmt::format("{} {} and {} {}", at_floor, floor, lost, overflow);
    Finding f;
    f.topic = "support";
    f.sentence = fmt::format("not known whether {} {} tokens apart: of the pairs that differ in {} alone, {}",
                             part.what, part.many ? "keep" : "keeps", part.many ? "them" : "it", why);
    f.known = false;
    return f;
  }

  Finding moved(const Name& part, const Pairs& found) const {
    const std::vector<Pair>& all = found.all;
    const double middle = median_ratio(all), much = std::log10(kMuch);
    const Pair& shown = middle < 0 ? all.front() : all.back();
    const auto verb_of = [&](double ratio) -> std::string_view {
      return ratio > much    ? (part.many ? "keep tokens apart" : "keeps tokens apart")
             : ratio < -much ? (part.many ? "make tokens alike" : "makes tokens alike")
                             : (part.many ? "do little" : "does little");
    };
    // Where the two pairs in the middle are far apart, on two sides of a threshold, no factor stands for all.
    const double low = all[(all.size() - 1) / 2].ratio(), high = all[all.size() / 2].ratio();
    if (verb_of(low) != verb_of(high) && high - low > 2 * much) return mixed(part, found, low, high);
    const std::string_view verb = verb_of(middle);
    // Beside rounding a residual may be any smaller.
    constexpr double kRoundings = 8;
    const auto rounded = [&](double Pair::*end) {
      return std::ranges::any_of(all,
                                 [&](const Pair& p) { return p.*end < floor_ + std::log10(kRoundings); });
    };
    const char* const bound = middle > much && rounded(&Pair::fallen)  ? "at least "
                              : middle < -much && rounded(&Pair::held) ? "at most "
                                                                       : "";
    const auto [so, texts] = texts_like(all[all.size() / 2], middle);
    Finding f;
    f.topic = "support";
    f.known = 2 * so >= texts;  // a few texts that collapse take the mean down
    f.sentence = fmt::format(
        "{}{} {}: the last relative residual times {}{} (median of {} pairs that differ in {} alone, on {}; "
        "thresholds {} and {}{}), at most from {} to {} ({} and {}){}{}",
        f.known ? "" : "not known whether ", part.what, verb, bound, power_text(middle), all.size(),
        part.many ? "them" : "it", texts_text(), 1 / kMuch, kMuch,
        so == texts ? "" : fmt::format("; so in {} of {} texts of the pair in the middle", so, texts),
        residual_text(shown.fallen), residual_text(shown.held), shown.without->name, shown.with->name,
        other_way(all, middle < 0), lost_text(found));
    f.value = number(shown.held);
    f.baseline = number(shown.fallen);
    f.threshold = kMuch;
    return f;
  }

  // The residuals are geometric means over texts: in how many the pair moves as far by itself, and of how
  // many.
  std::pair<int64_t, int64_t> texts_like(const Pair& p, double middle) const {
    const double much = std::log10(kMuch);
    if (std::abs(middle) <= much) return {0, 0};
    std::map<int64_t, std::pair<double, double>> texts;  // with the part, and without
    const std::string site = collapse_site(static_cast<int>(spec_.depth()));
    for (const SampleRow& r : table_.samples) {
      if (r.metric != "residual_l1inf_rel" || r.site.str() != site || r.tokens != "all") continue;
      if (r.variant.str() == p.with->name) texts[r.sample].first = r.value;
      if (r.variant.str() == p.without->name) texts[r.sample].second = r.value;
    }
    int64_t count = 0, all = 0;
    for (const auto& [text, ends] : texts) {
      if (!(ends.first > 0) && !(ends.second > 0)) continue;
      const double floor = std::pow(10.0, floor_);
      const double ratio = std::log10(std::max(ends.first, floor) / std::max(ends.second, floor));
      count += middle > 0 ? ratio > much : ratio < -much;
      ++all;
    }
    return {count, all};
  }

  Finding mixed(const Name& part, const Pairs& found, double low, double high) const {
    const std::vector<Pair>& all = found.all;
    const auto shown = [&](const Pair& p) {
      return fmt::format("from {} to {} ({} and {})", residual_text(p.fallen), residual_text(p.held),
                         p.without->name, p.with->name);
    };
    Finding f;
    f.topic = "support";
    f.sentence = fmt::format(
        "{} {} not act alike beside all other parts: of {} pairs that differ in {} alone, the two in the "
        "middle have times {} and times {} (thresholds {} and {}); the least {}, the most {}{}",
        part.what, part.many ? "do" : "does", all.size(), part.many ? "them" : "it", power_text(low),
        power_text(high), 1 / kMuch, kMuch, shown(all.front()), shown(all.back()), lost_text(found));
    f.value = number(all.back().held);
    f.baseline = number(all.back().fallen);
    f.threshold = kMuch;
    return f;
  }

  std::string lost_text(const Pairs& found) const {
    return found.lost == 0 ? ""
                           : fmt::format("; {} more have a network whose numbers {} does not hold to the end",
                                         found.lost, how_.name);
  }

  // The pairs, in the order of their ratios, that a part moves against the others.
  std::string other_way(const std::vector<Pair>& all, bool down) const {
    const auto against = [&](const Pair& p) { return down ? p.ratio() > 0 : p.ratio() < 0; };
    const auto count = std::count_if(all.begin(), all.end(), against);
    if (count == 0) return "";
    const Pair& most = down ? all.back() : all.front();
    return fmt::format("; {} of them the other way, at most from {} to {} ({} and {})", count,
                       residual_text(most.fallen), residual_text(most.held), most.without->name,
                       most.with->name);
  }

  // "16 texts": what the residuals are means over.
  std::string texts_text() const {
    const int depth = static_cast<int>(spec_.depth());
    int64_t n = 0;
    for (const char* metric : {"residual_l1inf_rel", "residual_l1inf_rel_log10"})
      for (const CollapseVariant& v : variants_)
        if (const Row* r =
                table_.find(v.name, metric, collapse_layer(depth), -1, "all", collapse_site(depth)))
          n = std::max(n, r->n);
    return fmt::format("{} text{}", n, n == 1 ? "" : "s");
  }
  std::string floor_text() const {
    return how_.floor > 0 ? fmt::format("the rounding floor ({:.1g})", how_.floor) : "0";
  }
  std::string residual_text(double log) const { return log <= floor_ ? floor_text() : power_text(log); }
  // Of what no double holds a finding has no number.
  static double number(double log) {
    const double x = std::pow(10.0, log);
    return x > 0 || log == -INFINITY ? x : kNone;
  }

  const ModelSpec& spec_;
  const std::vector<CollapseVariant>& variants_;
  const CollapseArithmetic& how_;
  const ResultTable& table_;
  const double floor_;  // its logarithm
};

}  // namespace

void who_holds_the_rank_up(const ModelSpec& spec, const std::vector<CollapseVariant>& variants,
                           const CollapseArithmetic& how, const ResultTable& table,
                           std::vector<Finding>& verdict) {
  using V = CollapseVariant;
  const Support support(spec, variants, how, table);
  const bool one_skip = has_one_skip(spec);
  const auto say = [&](std::optional<Finding> f) {
    if (f) verdict.push_back(std::move(*f));
  };
  say(support.of(
      {one_skip ? "the skip" : "the attention skip"}, [](const V& v) { return v.attention_skip; },
      [](V& v) { v.attention_skip = false; }));
  say(support.of(
      {one_skip ? "the MLP" : "the MLP with its skip"}, [](const V& v) { return v.mlp == 2; },
      [](V& v) { v.mlp = 0; }));
  say(support.of(
      {"the norm"}, [](const V& v) { return v.norm && !v.held_norms; }, [](V& v) { v.norm = false; }));
  if (how.positions)
    say(support.of(
        {"the positions", true}, [](const V& v) { return v.positions; }, [](V& v) { v.positions = false; }));
}

}  // namespace rankscope
