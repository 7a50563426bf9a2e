// What the rules of the verdict ask the table, and the words they share.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/special.h"
#include "base/stats.h"
#include "verdict/rule.h"
#include "verdict/statistics.h"

namespace rankscope::verdict {

Side side(double value, double error, int64_t samples, double threshold) {
  constexpr double kTwoErrors = 0.02275;  // of a normal distribution, beyond two standard errors on one side
  if (!std::isfinite(error) || samples < 2) return Side::unclear;
  const Side at = value < threshold ? Side::below : Side::above;
  if (error == 0) return at;
  const double t = std::fabs(value - threshold) / error;
  return student_tail(t, static_cast<double>(samples - 1)) <= kTwoErrors ? at : Side::unclear;
}

bool is_geometric(std::string_view metric) {
  return metric.starts_with("residual_") || metric == "offset_fro";
}

Side side(const Row& r, double threshold) {
  if (!is_geometric(r.metric.str()) || r.value == 0) return side(r.value, r.stderr_, r.n, threshold);
  return side(std::log(r.value), r.stderr_ / r.value, r.n, std::log(threshold));
}

std::vector<Side> sides_of(const std::vector<const Row*>& rows, double threshold) {
  std::vector<double> above, below;  // p-values against the other side
  for (const Row* r : rows) {
    const bool error = std::isfinite(r->stderr_) && r->n > 1;
    const double away = r->value - threshold;
    // Without an error a value at the threshold is above it, as in side().
    const double t = r->stderr_ == 0 ? (away < 0 ? -1e300 : 1e300) : away / r->stderr_,
                 freedom = static_cast<double>(r->n - 1);
    above.push_back(error ? student_tail(t, freedom) : 1.0);
    below.push_back(error ? student_tail(-t, freedom) : 1.0);
  }
  const std::vector<bool> over = benjamini_hochberg(above, kFalseShare),
                          under = benjamini_hochberg(below, kFalseShare);
  std::vector<Side> out;
  for (size_t i = 0; i < rows.size(); ++i)
    out.push_back(over[i] ? Side::above : under[i] ? Side::below : Side::unclear);
  return out;
}

Claim::Answer answer_of(Side s, Side yes) {
  return s == Side::unclear ? Claim::Answer::unknown : s == yes ? Claim::Answer::yes : Claim::Answer::no;
}

Evidence::Evidence(const ResultTable& table) {
  for (const Row& r : table.rows) {
    if (std::isnan(r.value)) continue;
    rows_[{r.variant.str(), r.metric.str()}].push_back(&r);
    if (std::find(variants_.begin(), variants_.end(), r.variant.str()) == variants_.end())
      variants_.push_back(r.variant.str());
  }
  std::vector<const SampleRow*>* same =
      nullptr;  // millions of rows, of which most go where the last one went
  const SampleRow* last = nullptr;
  for (const SampleRow& r : table.samples) {
    if (last == nullptr || r.variant != last->variant || r.metric != last->metric)
      same = &samples_[{r.variant.str(), r.metric.str()}];
    last = &r;
    if (!std::isnan(r.value)) same->push_back(&r);
  }
  for (const char* name : {"null:init", "baseline"})  // the later one wins
    if (std::find(variants_.begin(), variants_.end(), name) != variants_.end()) baseline_ = name;
}

const std::vector<const SampleRow*>& Evidence::samples(std::string_view variant,
                                                       std::string_view metric) const {
  static const std::vector<const SampleRow*> none;
  const auto found = samples_.find({variant, metric});
  return found == samples_.end() ? none : found->second;
}

std::map<int64_t, double> Evidence::samples_at(std::string_view variant, std::string_view metric,
                                               std::string_view site, std::string_view tokens) const {
  std::map<int64_t, double> out;
  for (const SampleRow* r : samples(variant, metric))
    if (r->site == site && r->tokens == tokens && r->head < 0) out[r->sample] = r->value;
  return out;
}

std::map<std::pair<int, int>, std::vector<double>> Evidence::samples_of_heads(std::string_view variant,
                                                                              std::string_view metric) const {
  std::map<std::pair<int, int>, std::vector<double>> out;
  for (const SampleRow* r : samples(variant, metric))
    if (r->head >= 0) out[{r->layer, r->head}].push_back(r->value);
  return out;
}

const std::vector<const Row*>& Evidence::all(std::string_view variant, std::string_view metric) const {
  static const std::vector<const Row*> none;
  const auto found = rows_.find({variant, metric});
  return found == rows_.end() ? none : found->second;
}

const Row* Evidence::any(std::string_view variant, std::string_view metric) const {
  const auto& rows = all(variant, metric);
  return rows.empty() ? nullptr : rows.front();
}

const Row* Evidence::at_site(std::string_view variant, std::string_view metric, std::string_view site,
                             std::string_view tokens) const {
  for (const Row* r : all(variant, metric))
    if (r->site.str() == site && r->head < 0 && r->tokens.str() == tokens) return r;
  return nullptr;
}

const Row* Evidence::of_head(std::string_view variant, std::string_view metric, int layer, int head) const {
  for (const Row* r : all(variant, metric))
    if (r->layer == layer && r->head == head) return r;
  return nullptr;
}

std::string Evidence::baseline_name() const {
  return baseline_ == "null:init" ? "random initialisation" : std::string(baseline_);
}

Path::Path(const ModelSpec& spec) : final_layer(static_cast<int>(spec.depth())) {
  pre_norm = spec.pre_norm();
  for (int l = 0; l < final_layer; ++l)
    places.push_back(
        {fmt::format("blocks.{}.{}", l, pre_norm ? "ln1.hook_normalized" : "hook_resid_post"), l});
  if (pre_norm) places.push_back({"ln_final.hook_normalized", final_layer});
}

std::string Path::one(int layer) const {
  return layer == final_layer ? "the final norm" : fmt::format("layer {}", layer);
}

Finding& Case::say(std::string topic, std::string sentence, bool known) {
  findings.push_back({std::move(topic), std::move(sentence), known, -1, -1, kNone, kNone, kNone});
  return findings.back();
}

std::string Case::short_text() const {
  return fmt::format("the shortest sample has {}, and so few decide nothing (short_text {})",
                     count_of(static_cast<double>(measured.shortest), "content token"),
                     number(limit("short_text")));
}

std::string Case::too_few(const Row& r) const {
  if (static_cast<double>(r.n) < limit("few_samples"))
    return fmt::format("{} decide{} nothing (few_samples {})", count_of(static_cast<double>(r.n), "sample"),
                       r.n == 1 ? "s" : "", number(limit("few_samples")));
  if (static_cast<double>(measured.shortest) < limit("few_tokens"))
    return fmt::format("the shortest sample has {}, and so few decide nothing (few_tokens {})",
                       count_of(static_cast<double>(measured.shortest), "content token"),
                       number(limit("few_tokens")));
  return "";
}

std::string Case::residual_text(double x) const {
  return x < floor() ? fmt::format("the rounding floor ({:.0e})", floor()) : number(x);
}

std::string_view Case::residual_name() const {
  return evidence.any("full", "residual_fro_rel_normed") != nullptr ? "normed residual" : "residual";
}

namespace {

const Row* of_normed(const Case& c, std::string_view variant, std::string_view metric, const Place& p) {
  const int left_by = c.path.pre_norm ? p.layer - 1 : p.layer;  // the block whose output is read here
  return left_by < 0 ? nullptr
                     : c.evidence.at_site(variant, metric, fmt::format("blocks.{}.hook_resid_post", left_by),
                                          "content");
}

}  // namespace

const Row* Case::residual(std::string_view variant, const Place& p) const {
  if (evidence.any("full", "residual_fro_rel_normed") != nullptr)
    return of_normed(*this, variant, "residual_fro_rel_normed", p);
  return evidence.at_site(variant, "residual_fro_rel_trimmed", p.site, "content");
}

const Row* Case::at_place(std::string_view variant, const Place& p) const {
  return evidence.at_site(variant, "residual_fro_rel", p.site, "content");
}

const Row* Case::left_out(std::string_view variant, const Place& p) const {
  return of_normed(*this, variant, "normed_left_out", p);
}

namespace {

// Where a layer was looked at, one of these has a number for every head, be it zero.
constexpr std::string_view kOfEveryHead[] = {"head_output_rel", "attention_entropy", "ov_effective_rank"};

std::set<std::pair<int, int>> heads_with(const Evidence& evidence, std::string_view metric) {
  std::set<std::pair<int, int>> out;
  for (const Row* r : evidence.all("full", metric))
    if (r->head >= 0) out.emplace(r->layer, r->head);
  return out;
}

}  // namespace

std::vector<std::string> Case::heads_without(std::string_view metric) const {
  std::set<std::pair<int, int>> seen;
  for (const std::string_view every : kOfEveryHead) seen.merge(heads_with(evidence, every));
  const std::set<std::pair<int, int>> has = heads_with(evidence, metric);
  std::vector<std::string> out;
  for (const auto& head : seen)
    if (!has.contains(head)) out.push_back(fmt::format("L{}H{}", head.first, head.second));
  return out;
}

std::string Case::of_those(std::string_view metric) const {
  const size_t without = heads_without(metric).size(), has = heads_with(evidence, metric).size();
  return without == 0 ? "" : fmt::format(", of the {} of {} heads that have a number", has, has + without);
}

std::string Case::beside(const Row* r) const {
  return r == nullptr ? ", no baseline" : fmt::format(", {} {}", evidence.baseline_name(), number(r->value));
}

const Row* Case::output_cost(std::string_view variant) const {
  const Row* kl = evidence.any(variant, "output_kl");
  return kl != nullptr ? kl : evidence.any(variant, "output_error");
}

Row Case::loss_rise(std::string_view variant) const {
  Row out;
  for (const char* metric : {"nll", "pseudo_nll"}) {
    std::map<int64_t, double> full;
    for (const SampleRow* r : evidence.samples("full", metric)) full[r->sample] = r->value;
    std::vector<double> rises;
    for (const SampleRow* r : evidence.samples(variant, metric))
      if (const auto own = full.find(r->sample); own != full.end()) rises.push_back(r->value - own->second);
    if (rises.empty()) continue;
    const Estimate mean = arithmetic_mean(rises);
    out.value = mean.value, out.stderr_ = mean.stderr_, out.n = static_cast<int64_t>(rises.size());
  }
  return out;
}

double Case::epsilon_of(const Row& cost) const {
  return limit(cost.metric == "output_kl" ? "epsilon" : "epsilon_error");
}

std::string why_unclear(const Row& r, std::string_view near) {
  const std::string why = r.n < 2   ? "one sample has no error"
                          : r.n < 4 ? fmt::format("{} samples are too few to tell from {}", r.n, near)
                                    : fmt::format("too near {} for their errors", near);
  return why + "; more samples would decide";
}

void about(Finding& f, const Row& r, double threshold, const Row* baseline) {
  f.layer = r.layer;
  f.head = r.head;
  f.value = r.value;
  f.threshold = threshold;
  if (baseline != nullptr) f.baseline = baseline->value;
}

std::string number(double x) {
  const bool thousands = std::fabs(x) >= 1000 && std::fabs(x) < 1e6;  // 2005 reads better than 2e+03
  return thousands ? fmt::format("{:.0f}", x) : fmt::format("{:.3g}", x);
}

std::string with_error(const Row& r) {
  if (!std::isfinite(r.stderr_) || r.stderr_ <= 0) return number(r.value);
  return fmt::format("{} ± {:.2g}", number(r.value), r.stderr_);
}

std::string count_of(double n, std::string_view what) {
  return fmt::format("{} {}{}", number(n), what, n == 1 ? "" : "s");
}

std::string label(const Row& r) { return fmt::format("L{}H{}", r.layer, r.head); }

std::string list_of(const std::vector<std::string>& names) {
  constexpr size_t most = 12;
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most)));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

std::string layers_text(const std::vector<int>& sorted) {
  return fmt::format("layer{} {}", sorted.size() > 1 ? "s" : "", ranges(sorted));
}

std::string ranges(const std::vector<int>& sorted) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < sorted.size();) {
    size_t k = i;
    while (k + 1 < sorted.size() && sorted[k + 1] == sorted[k] + 1) ++k;
    parts.push_back(i == k ? fmt::format("{}", sorted[i]) : fmt::format("{}-{}", sorted[i], sorted[k]));
    i = k + 1;
  }
  std::string last = parts.empty() ? "" : parts.back();
  if (parts.size() < 2) return last;
  parts.pop_back();
  return fmt::format("{} and {}", fmt::join(parts, ", "), last);
}

}  // namespace rankscope::verdict
