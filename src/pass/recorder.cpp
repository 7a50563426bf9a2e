#include "pass/recorder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/error.h"
#include "base/stats.h"

namespace rankscope {

SiteRecorder::SiteRecorder(const Lens& lens, Site site, std::vector<Name> variants)
    : lens_(lens), site_(std::move(site)), variants_(std::move(variants)) {
  for (const MetricInfo& m : lens.metrics) metrics_.emplace_back(m.name);
}

// -1 stands for any size.
void SiteRecorder::require_shape(const at::Tensor& t, const std::vector<int64_t>& shape) const {
  bool same = t.dim() == static_cast<int64_t>(shape.size());
  for (size_t i = 0; same && i < shape.size(); ++i)
    same = shape[i] < 0 || shape[i] == t.size(static_cast<int64_t>(i));
  if (!same)
    throw Error(fmt::format("the lens {} should return [{}], where -1 is any size, but returned [{}]",
                            lens_.name, fmt::join(shape, ", "), fmt::join(t.sizes(), ", ")))
        .in(site_.name);
}

void SiteRecorder::add(const at::Tensor& numbers, std::span<const int64_t> samples, Crossing& crossing,
                       DeviceEvent made) {
  if (!numbers.defined()) return;
  const auto count = static_cast<int64_t>(samples.size()), metrics = static_cast<int64_t>(metrics_.size());
  require_shape(numbers, {-1, count, -1, metrics});
  crossing.add(
      numbers,
      [this, rules = numbers.size(0), slots = numbers.size(2),
       which = std::vector(samples.begin(), samples.end())](const double* values) {
        file(values, rules, which, slots);
      },
      std::move(made));
}

void SiteRecorder::file(const double* values, int64_t rules, const std::vector<int64_t>& samples,
                        int64_t slots) {
  const auto count = static_cast<int64_t>(samples.size()), metrics = static_cast<int64_t>(metrics_.size());
  for (int64_t rule = 0; rule < rules; ++rule)
    for (int64_t slot = 0; slot < slots; ++slot)
      for (int64_t k = 0; k < metrics; ++k) {
        Values* to = nullptr;  // made for the first value that is defined
        for (int64_t s = 0; s < count; ++s) {
          const double value = values[((rule * count + s) * slots + slot) * metrics + k];
          if (!std::isfinite(value)) continue;  // not defined for this sample: n says how many were
          if (to == nullptr)
            to = &samples_[{metrics_[static_cast<size_t>(k)],
                            slot + 1 == slots ? site_.head : static_cast<int>(slot),
                            rule == 0 ? "all" : "content"}];
          to->samples.push_back(samples[static_cast<size_t>(s)]);
          to->values.push_back(value);
        }
      }
}

void SiteRecorder::add_totals(const at::Tensor& totals, Crossing& crossing) {
  if (!totals.defined()) return;
  require_shape(totals, {-1, static_cast<int64_t>(metrics_.size()), 3});
  crossing.add(totals, [this, slots = totals.size(0)](const double* values) { file_totals(values, slots); });
}

void SiteRecorder::file_totals(const double* at, int64_t slots) {
  for (int64_t slot = 0; slot < slots; ++slot)
    for (const Name& metric : metrics_) {
      if (!std::isnan(at[0]))
        rows_.push_back({"", site_.name, site_.layer, slot + 1 == slots ? site_.head : static_cast<int>(slot),
                         metric, at[0], at[1], static_cast<int64_t>(at[2]), site_.depth, "all",
                         site_.stream});
      at += 3;
    }
}

void SiteRecorder::sample(std::string_view metric, int64_t sample, double value) {
  if (!std::isfinite(value)) return;
  Values& v = samples_[{metric, site_.head, "all"}];
  v.samples.push_back(sample);
  v.values.push_back(value);
}

void SiteRecorder::value(std::string_view metric, double value, double stderr_, int64_t n) {
  rows_.push_back(
      {"", site_.name, site_.layer, site_.head, metric, value, stderr_, n, site_.depth, "all", site_.stream});
}

Mean SiteRecorder::mean_of(const Name& metric) const {
  for (const MetricInfo& info : lens_.metrics)
    if (metric == info.name) return info.mean;
  return Mean::arithmetic;
}

void SiteRecorder::flush(ResultTable& table) {
  for (auto& [key, v] : samples_) {
    const auto& [metric, head, tokens] = key;
    const Estimate e =
        mean_of(metric) == Mean::geometric ? geometric_mean(v.values) : arithmetic_mean(v.values);
    rows_.push_back({"", site_.name, site_.layer, head, metric, e.value, e.stderr_,
                     static_cast<int64_t>(v.values.size()), site_.depth, tokens, site_.stream});
  }
  for (const Name& variant : variants_) {
    for (Row row : rows_) {
      row.variant = variant;
      table.rows.push_back(row);
    }
    for (const auto& [key, v] : samples_) {
      const auto& [metric, head, tokens] = key;
      for (size_t i = 0; i < v.values.size(); ++i)
        table.samples.push_back({variant, site_.name, site_.layer, head, metric, tokens, v.samples[i],
                                 v.values[i], site_.stream, site_.depth});
    }
  }
}

}  // namespace rankscope
