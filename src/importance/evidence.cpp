#include "importance/evidence.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/special.h"
#include "pass/readout.h"

namespace rankscope {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

double Rise::upper(double level) const {
  if (!std::isfinite(error) || !(freedom > 0)) return kInfinite;
  return error == 0 ? mean : mean + student_quantile(level, freedom) * error;
}

double Rise::lower(double level) const {
  if (!std::isfinite(error) || !(freedom > 0)) return -kInfinite;
  return error == 0 ? mean : mean - student_quantile(level, freedom) * error;
}

double Rise::samples_for(double bound, double level) const {
  if (!std::isfinite(error) || !(mean < bound)) return kInfinite;
  const double spread = error * std::sqrt(freedom + 1);  // of one sample
  const auto decides = [&](double n) {
    return Rise{mean, spread / std::sqrt(n), n - 1}.upper(level) <= bound;
  };
  double low = 1, high = 2;
  for (; !decides(high); low = high, high *= 2)
    if (high > 1e12) return kInfinite;
  while (high - low > 1) {
    const double middle = std::floor((low + high) / 2);
    (decides(middle) ? high : low) = middle;
  }
  return high;
}

Rise paired_rise(const std::vector<double>& full, const std::vector<double>& other,
                 const std::vector<int64_t>& tokens) {
  if (full.size() != other.size() || full.size() != tokens.size())
    throw Error("losses of different samples cannot be compared");
  std::vector<double> more;
  double all = 0, squares = 0;
  for (size_t s = 0; s < tokens.size(); ++s) {
    more.push_back(other[s] - full[s]);
    all += static_cast<double>(tokens[s]);
    squares += static_cast<double>(tokens[s]) * static_cast<double>(tokens[s]);
  }
  const WeightedMean mean = mean_over_tokens(more, tokens);
  return {mean.value, mean.error, all * all / squares - 1};  // as many as equally long samples would be
}

double level_of_look(int64_t look) {
  const auto k = static_cast<double>(look);
  return kSearchLevel / (k * (k + 1));
}

Held held_against(const Rise& rise, int64_t samples, double budget) {
  if (samples < kFewSamples) return Held::undecided;
  if (rise.upper(kHeldLevel) <= budget) return Held::within;
  return rise.lower(kHeldLevel) > budget ? Held::over : Held::undecided;
}

}  // namespace rankscope
