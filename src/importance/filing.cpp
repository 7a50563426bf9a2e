#include "importance/filing.h"

#include <cmath>

#include "base/stats.h"
#include "pass/readout.h"

namespace rankscope {

std::string Filing::output_metric(const std::string& stem) const {
  return stem + (e_.spec().output.kind != HeadKind::none ? "_kl" : "_error");
}

std::vector<double> Filing::loss_gained(const Judged& j) const {
  std::vector<double> out;
  for (size_t s = 0; s < j.loss.size(); ++s) out.push_back(j.loss[s] - e_.full().loss[s]);
  return out;
}

double Filing::mean_loss_gained(const Judged& j) const {
  return j.loss.empty() ? kNone : mean_over_tokens(loss_gained(j), e_.asked()).value;
}

bool Filing::loses_text(const Judged& j, double epsilon) const {
  if (j.loss.empty()) return false;
  const WeightedMean rise = mean_over_tokens(loss_gained(j), e_.asked());
  return rise.value - 2 * (std::isfinite(rise.error) ? rise.error : 0) > epsilon;
}

void Filing::judged(const std::string& stem, const RowPlace& place, const Judged& j) {
  samples(output_metric(stem), place, j.kl, false);
  if (!j.loss.empty()) samples(stem + "_loss", place, loss_gained(j), true);
}

void Filing::samples(const std::string& metric, const RowPlace& place, const std::vector<double>& values,
                     bool by_tokens) {
  double value = 0, error = kNone;
  if (by_tokens) {
    const WeightedMean mean = mean_over_tokens(values, e_.asked());
    value = mean.value, error = mean.error;
  } else {
    const Estimate mean = arithmetic_mean(values);
    value = mean.value, error = mean.stderr_;
  }
  const auto layer = static_cast<int32_t>(place.layer), head = static_cast<int32_t>(place.head);
  table_.rows.push_back({"full", place.site, layer, head, metric, value, error,
                         static_cast<int64_t>(values.size()), static_cast<int32_t>(place.depth), "all"});
  if (place.depth >= 0 && place.head < 0) return;  // points of a curve: the means say it
  for (size_t s = 0; s < values.size(); ++s)
    table_.samples.push_back({"full",
                              place.site,
                              layer,
                              head,
                              metric,
                              "all",
                              numbers_[s],
                              values[s],
                              {},
                              static_cast<int32_t>(place.depth)});
}

void Filing::number(const std::string& metric, const RowPlace& place, double value) {
  table_.rows.push_back({"full", place.site, static_cast<int32_t>(place.layer),
                         static_cast<int32_t>(place.head), metric, value, kNone, e_.samples(),
                         static_cast<int32_t>(place.depth), "all"});
}

}  // namespace rankscope
