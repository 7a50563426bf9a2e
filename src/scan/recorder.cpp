#include "scan/recorder.h"

#include <algorithm>
#include <cmath>

#include "base/stats.h"

namespace rankscope {

void SiteRecorder::sample(std::string_view metric, int64_t sample, double value, int head,
                          std::string_view tokens) {
  if (!std::isfinite(value)) return;  // not defined for this sample: n says how many were
  Values& v = samples_[{Name(metric), head, Name(tokens)}];
  v.samples.push_back(sample);
  v.values.push_back(value);
}

void SiteRecorder::value(std::string_view metric, double value, double stderr_, int64_t n, int head,
                         std::string_view tokens) {
  rows_.push_back({"", site_.name, site_.layer, head, metric, value, stderr_, n, site_.depth, tokens});
}

void SiteRecorder::spectrum(std::string_view name, int head, std::span<const double> sigma) {
  if (arrays_ == nullptr || sigma.empty()) return;
  const std::string whole = site_.name + "." + std::string(name);
  const auto length = static_cast<int64_t>(sigma.size());
  NamedArray& array = spectra_.try_emplace(whole, NamedArray{whole, {0, length}, {}}).first->second;
  if (array.shape[0] != head || array.shape[1] != length)
    return;  // not as wide as the others: no place for it
  array.values.insert(array.values.end(), sigma.begin(), sigma.end());
  ++array.shape[0];
}

Mean SiteRecorder::mean_of(const std::string& metric) const {
  for (const MetricInfo& info : lens_.metrics)
    if (info.name == metric) return info.mean;
  return Mean::arithmetic;
}

void SiteRecorder::flush(ResultTable& table) {
  for (auto& [name, array] : spectra_) arrays_->push_back(std::move(array));
  for (auto& [key, v] : samples_) {
    const auto& [metric, head, tokens] = key;
    const Estimate e =
        mean_of(metric.str()) == Mean::geometric ? geometric_mean(v.values) : arithmetic_mean(v.values);
    rows_.push_back({"", site_.name, site_.layer, head, metric, e.value, e.stderr_,
                     static_cast<int64_t>(v.values.size()), site_.depth, tokens});
  }
  for (const Name& variant : variants_) {
    for (Row row : rows_) {
      row.variant = variant;
      table.rows.push_back(row);
    }
    for (const auto& [key, v] : samples_) {
      const auto& [metric, head, tokens] = key;
      for (size_t i = 0; i < v.values.size(); ++i)
        table.samples.push_back(
            {variant, site_.name, site_.layer, head, metric, tokens, v.samples[i], v.values[i]});
    }
  }
}

}  // namespace rankscope
