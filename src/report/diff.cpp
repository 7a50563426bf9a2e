#include "report/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/special.h"
#include "base/stats.h"
#include "report/text.h"

namespace rankscope {
namespace {

constexpr double kClear = 2;       // standard errors, as in the verdict
constexpr double kVisible = 1e-4;  // of the values' size: what no table shows is no change to speak of

using Key = std::tuple<Name, Name, int32_t, int32_t, Name, Name, Name, int32_t>;
using PerSample = std::map<Key, std::map<int64_t, double>>;

template <class AnyRow>
Key key_of(const AnyRow& r) {
  return {r.variant, r.site, r.layer, r.head, r.metric, r.tokens, r.stream, r.depth};
}

Key without_depth(Row r) {
  r.depth = kDepthNotSaid;
  return key_of(r);
}

PerSample by_row(const std::vector<SampleRow>& rows) {
  PerSample out;
  for (const SampleRow& r : rows) out[key_of(r)][r.sample] = r.value;
  return out;
}

// Empty where the manifest does not say.
std::string known_ids(const SavedResults& r) {
  const Json::json_pointer place("/input/ids");
  if (!r.manifest.contains(place) || !r.manifest.at(place).is_string()) return "";
  const std::string ids = r.manifest.at(place).get<std::string>();
  return ids.size() > std::string_view("sha256:").size() ? ids : "";
}

std::string ids_of(const SavedResults& r) {
  const std::string ids = known_ids(r);
  if (ids.empty())
    throw Error("the manifest does not say which tokens were read")
        .in(r.name)
        .hint("scan again with this program");
  return ids;
}

bool is_geometric(const SavedResults& r, const std::string& metric) {
  const auto known = r.manifest.find("metrics");
  if (known == r.manifest.end() || !known->is_object() || !known->contains(metric)) return false;
  const Json& about = (*known)[metric];
  return about.is_object() && about.value("mean", "") == "geometric";
}

// Schema 1 knew no versions: its metrics are what version 1 names.
int64_t version_of(const SavedResults& r, const std::string& metric) {
  const auto known = r.manifest.find("metric_versions");
  if (known == r.manifest.end() || !known->is_object() || !known->contains(metric)) return 1;
  const Json& version = (*known)[metric];
  return version.is_number_integer() ? version.get<int64_t>() : 1;
}

// A bug fix between two scans looks like a difference between two models.
std::vector<std::string> version_notes(const SavedResults& a, const SavedResults& b,
                                       const std::vector<Change>& changes) {
  std::set<Name> metrics;
  for (const Change& c : changes) metrics.insert(c.metric);
  std::vector<std::string> out;
  for (const Name& metric : metrics)
    if (const int64_t first = version_of(a, metric.str()), second = version_of(b, metric.str());
        first != second)
      out.push_back(
          fmt::format("{} has version {} in the first and {} in the second: a bug fix changed its "
                      "numbers, scan both with one program",
                      metric.str(), first, second));
  return out;
}

// The values of the samples that both have, and how many only one of them has.
struct Pairs {
  Pairs(const std::map<int64_t, double>& all_a, const std::map<int64_t, double>& all_b) {
    for (const auto& [sample, x] : all_a)
      if (const auto y = all_b.find(sample); y != all_b.end()) {
        a.push_back(x);
        b.push_back(y->second);
      }
    unpaired = static_cast<int64_t>(all_a.size() + all_b.size() - 2 * a.size());
  }
  std::vector<double> a, b;
  int64_t unpaired = 0;
};

// The standard error of b - a over pairs of samples. Geometric means have a ratio, whose logarithm is a mean
// over pairs: the error of that, times how far b - a goes for each unit of it, so that both say equally
// surely that something changed. Where one of them is zero there is no ratio, and its own error is left.
double paired_error(const Change& c, const Pairs& pairs, bool geometric, int64_t& n) {
  n = static_cast<int64_t>(pairs.a.size());
  std::vector<double> a = pairs.a, b = pairs.b;
  double scale = 1;
  if (geometric) {
    const bool ratio = c.a > 0 && c.b > 0;
    a = c.a > 0 ? logs_of(a) : std::vector<double>(a.size(), 0.0);
    b = c.b > 0 ? logs_of(b) : std::vector<double>(b.size(), 0.0);
    const double log_ratio = ratio ? std::log(c.b / c.a) : 0;
    scale = log_ratio != 0 ? (c.b - c.a) / log_ratio : std::max(c.a, c.b);
  }
  for (size_t i = 0; i < b.size(); ++i) b[i] -= a[i];
  return scale * arithmetic_mean(b).stderr_;
}

// Numbers that name a place (a token, a channel): their differences mean nothing.
bool is_index(std::string_view metric) {
  static const std::set<std::string_view> names{"sink_position", "sink_key_position", "sink_key_token",
                                                "massive_token", "massive_channel"};
  return names.contains(metric);
}

// "L3H2 attn.hook_pattern"
std::string place_of(const Change& c) {
  const std::string site = c.site.str();
  if (c.layer < 0) return site;
  const std::string prefix = fmt::format("blocks.{}.", c.layer);
  return fmt::format("L{}{} {}", c.layer, c.head < 0 ? "" : fmt::format("H{}", c.head),
                     site.starts_with(prefix) ? site.substr(prefix.size()) : site);
}

// Rounding is the same for every sample, so its standard error is next to nothing, too: another version of
// LibTorch, another device or float64 change every number surely, and none to speak of.
bool clear(const Change& c) { return c.errors() >= kClear && c.relative() >= kVisible; }

// Clear changes of paired samples, then what is read from the weights, then the rest.
int standing(const Change& c) { return !clear(c) ? 2 : std::isinf(c.errors()) ? 1 : 0; }

// How often a difference of nothing but noise is `errors` standard errors or more, for a mean of n.
double by_chance(double errors, int64_t n) { return 2 * student_tail(errors, static_cast<double>(n - 1)); }

}  // namespace

double Change::errors() const {
  if (delta == 0) return 0;
  if (std::isnan(stderr_)) return n > 0 ? 0 : INFINITY;
  return std::fabs(delta) / stderr_;
}

// Wallace (1959): Student's t as a normal deviate, in closed form and without underflow.
double Change::sureness() const {
  const double t = errors(), freedom = static_cast<double>(n - 1);
  if (std::isinf(t) || freedom < 1) return t;
  return (8 * freedom + 1) / (8 * freedom + 3) * std::sqrt(freedom * std::log1p(t * t / freedom));
}

double Change::relative() const {
  const double size = 0.5 * (std::fabs(a) + std::fabs(b));
  return size > 0 ? std::fabs(delta) / size : 0;
}

bool same_tokens(const SavedResults& a, const SavedResults& b) {
  const std::string ids = known_ids(a);
  return !ids.empty() && ids == known_ids(b);
}

ScanDiff compare(const SavedResults& a, const SavedResults& b) {
  if (ids_of(a) != ids_of(b))
    throw Error("the two scans read different tokens")
        .in(fmt::format("{} and {}", a.name, b.name))
        .hint("scan both models on the same --token-ids, or on the same --text with the same tokenizer");
  const PerSample samples_a = by_row(a.table.samples), samples_b = by_row(b.table.samples);
  std::map<Key, const Row*> rows_b;
  for (const Row& r : b.table.rows) rows_b.emplace(key_of(r), &r);
  // Samples that do not say their depth may be those of several rows: which of them is not known.
  std::map<Key, int> sharing;
  for (const Row& r : a.table.rows) ++sharing[without_depth(r)];
  const auto samples_of = [&](const PerSample& all, const Row& r) {
    const auto exact = all.find(key_of(r));
    return exact != all.end() ? exact : all.find(without_depth(r));
  };

  ScanDiff out{a.name, b.name, {}};
  for (const Row& r : a.table.rows) {
    const auto partner = rows_b.find(key_of(r));
    if (partner == rows_b.end()) {
      ++out.only_a;
      continue;
    }
    Change c{r.variant, r.site, r.metric, r.tokens, r.layer, r.head, r.value, partner->second->value};
    c.stream = r.stream;
    rows_b.erase(partner);
    const bool same = c.a == c.b || (std::isnan(c.a) && std::isnan(c.b));
    out.differing += !same;
    if (is_index(r.metric.str())) {
      out.moved += !same;
      continue;
    }
    if (!std::isfinite(c.a) || !std::isfinite(c.b)) continue;
    if (c.metric == "perplexity") continue;  // nll says the same, and has a number for every sample
    const auto sa = samples_of(samples_a, r), sb = samples_of(samples_b, r);
    if (sa != samples_a.end() && sb != samples_b.end()) {
      const Pairs pairs(sa->second, sb->second);
      const bool geometric = is_geometric(a, r.metric.str());
      const bool said = std::get<7>(sa->first) != kDepthNotSaid;
      const bool whose = said || sharing[without_depth(r)] == 1;
      if (whose && pairs.unpaired > 0) {  // means of different samples differ without any change
        if (pairs.a.empty()) continue;
        c.unpaired = pairs.unpaired;
        c.a = (geometric ? geometric_mean(pairs.a) : arithmetic_mean(pairs.a)).value;
        c.b = (geometric ? geometric_mean(pairs.b) : arithmetic_mean(pairs.b)).value;
      }
      const double error = paired_error(c, pairs, geometric, c.n);
      if (whose) c.stderr_ = error;
    } else if (std::isfinite(r.stderr_) || r.n > 1) {  // of all samples: no pairs tell how sure its change is
      out.untested += !same;
      continue;
    }
    c.delta = c.b - c.a;
    out.changes.push_back(c);
  }
  out.only_b = rows_b.size();
  out.notes = version_notes(a, b, out.changes);
  for (const Change& c : out.changes)
    if (c.n > 1 && !std::isnan(c.stderr_) && c.delta != 0) {  // what is equal to the bit is never clear
      ++out.comparisons;
      out.expected_by_chance += by_chance(kClear, c.n);
    }
  std::stable_sort(out.changes.begin(), out.changes.end(), [](const Change& x, const Change& y) {
    return standing(x) != standing(y)     ? standing(x) < standing(y)
           : x.sureness() != y.sureness() ? x.sureness() > y.sureness()
                                          : x.relative() > y.relative();
  });
  return out;
}

void print_diff(const ScanDiff& diff, size_t most, const TerminalStyle& style, std::ostream& out) {
  const auto line = [&](std::string_view text) { out << fit(text, style.width) << '\n'; };
  const auto table = [&](std::string_view title, const auto& wanted) {
    std::vector<const Change*> rows;
    size_t count = 0;
    for (const Change& c : diff.changes)
      if (wanted(c) && clear(c) && ++count <= most) rows.push_back(&c);
    line(fmt::format("{}: {} clear change{}", title, count, count == 1 ? "" : "s"));
    if (rows.empty()) return out << '\n', void();
    for (const Change* c : rows) {
      std::string name = c->metric.str();
      if (c->tokens == "content") name += " (content)";
      if (c->stream != "") name += " in the " + c->stream.str();
      if (c->variant != "full") name += " of " + c->variant.str();
      // Two changes may differ in the last letters of both, so a long line goes on below.
      const std::string where = terminal_text(name, 300) + " at " + terminal_text(place_of(*c), 60);
      const char* indent = "  ";
      for (const std::string& text : wrap(where, style.width - 6)) {
        line(indent + text);
        indent = "      ";
      }
      const std::string sure =
          std::isnan(c->stderr_)
              ? ""
              : fmt::format(" ± {}, {} standard errors", number_text(c->stderr_), number_text(c->errors()));
      line(fmt::format("      {} -> {}: {}{}", number_text(c->a), number_text(c->b), number_text(c->delta),
                       sure));
      if (c->unpaired > 0)
        line(fmt::format("      of the {} sample{} for which both are defined", c->n, c->n == 1 ? "" : "s"));
    }
    out << '\n';
  };
  line(fmt::format("{} -> {}: {} rows compared pair by pair", terminal_text(diff.a, 60),
                   terminal_text(diff.b, 60), diff.changes.size()));
  if (diff.only_a + diff.only_b > 0)
    line(fmt::format("{} rows are only in the first, {} only in the second", diff.only_a, diff.only_b));
  for (const std::string& note : diff.notes)
    for (const std::string& text : wrap("note: " + terminal_text(note, 400), style.width)) line(text);
  if (diff.differing + diff.only_a + diff.only_b == 0)
    return line("they are identical: every number is the same");
  out << '\n';
  const auto paired = [](const Change& c) { return !std::isinf(c.errors()); };
  table("layers", [&](const Change& c) { return c.head < 0 && paired(c); });
  table("heads", [&](const Change& c) { return c.head >= 0 && paired(c); });
  const auto whole = [&](const Change& c) { return !paired(c); };
  if (std::any_of(diff.changes.begin(), diff.changes.end(), whole)) table("weights", whole);
  std::string legend = fmt::format(
      "clear: two standard errors of the paired difference or more, the surest first; {} comparisons were "
      "made, and by "
      "chance alone about {} of them would be clear",
      diff.comparisons, number_text(std::round(diff.expected_by_chance)));
  if (std::any_of(diff.changes.begin(), diff.changes.end(),
                  [](const Change& c) { return clear(c) && std::isinf(c.errors()); }))
    legend +=
        "; weights: numbers read from them, or one of all samples, without an error, the largest relative "
        "change first";
  if (const auto faint = std::ranges::count_if(
          diff.changes, [](const Change& c) { return c.errors() >= kClear && !clear(c); });
      faint > 0)
    legend += fmt::format("; {} more changed surely, but by less than {} of their size, as rounding does",
                          faint, kVisible);
  if (diff.untested > 0)
    legend += fmt::format(
        "; {} number{} of all samples together (spread and the like) changed, and no pairs of samples say "
        "how "
        "surely",
        diff.untested, diff.untested == 1 ? "" : "s");
  if (diff.moved > 0)
    legend +=
        fmt::format("; {} numbers that name a token or a channel changed, and are not ranked", diff.moved);
  for (const std::string& text : wrap(legend, style.width)) line(text);
}

}  // namespace rankscope
