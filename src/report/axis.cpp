#include "report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rankscope {
namespace {

// Rounding of a / b must not lose or add a tick.
constexpr double kSlack = 1e-9;

double round_step(double span, int count) {
  const double rough = span / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * (1 - kSlack)) return factor * power;
  return 10 * power;
}

FigureAxis linear_axis(double low, double high, int count) {
  if (!(high > low)) {
    const double room = low == 0 ? 1 : std::fabs(low) / 2;
    low -= room;
    high += room;
  }
  const double step = round_step(high - low, count);
  FigureAxis axis{std::floor(low / step + kSlack) * step, std::ceil(high / step - kSlack) * step, false, {}};
  const auto n = static_cast<int>(std::lround((axis.high - axis.low) / step));
  const auto first = static_cast<int64_t>(std::llround(axis.low / step));
  for (int i = 0; i <= n; ++i) axis.ticks.push_back(static_cast<double>(first + i) * step);
  return axis;
}

FigureAxis log_axis(double low, double high, int count) {
  if (!(high > low)) {
    low /= 3;
    high *= 3;
  }
  const double decades = std::log10(high / low);
  const std::vector<double> factors = decades < 2 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  const int every = std::max(1, static_cast<int>(std::ceil(decades / std::max(count, 1))));
  std::vector<double> all;
  const auto first = static_cast<int>(std::floor(std::log10(low))) - every;
  const auto last = static_cast<int>(std::ceil(std::log10(high))) + every;
  for (int k = first; k <= last; ++k)
    if (k % every == 0)
      for (const double f : factors) all.push_back(f * std::pow(10, k));
  // From the last round number below to the first one above.
  auto begin = std::upper_bound(all.begin(), all.end(), low * (1 + kSlack));
  auto end = std::lower_bound(all.begin(), all.end(), high * (1 - kSlack));
  if (begin != all.begin()) --begin;
  if (end != all.end()) ++end;
  return {*begin, *(end - 1), true, {begin, end}};
}

}  // namespace

double FigureAxis::place(double value) const {
  return log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
}

FigureAxis nice_axis(double low, double high, bool log, int count) {
  return log ? log_axis(low, high, count) : linear_axis(low, high, count);
}

std::optional<FigureAxis> axis_at(std::vector<double> values, bool log, double width,
                                  const std::function<double(const std::string&)>& text_width) {
  constexpr size_t kMost = 12;
  constexpr double kBetween = 4;  // points between two numbers
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() < 2 || values.size() > kMost || (log && values.front() <= 0)) return std::nullopt;
  FigureAxis axis{values.front(), values.back(), log, values};
  for (size_t i = 1; i < values.size(); ++i) {
    const double between = (axis.place(values[i]) - axis.place(values[i - 1])) * width;
    const double needed = (text_width(tick_text(values[i])) + text_width(tick_text(values[i - 1]))) / 2;
    if (between < needed + kBetween) return std::nullopt;
  }
  return axis;
}

std::string tick_text(double value) { return fmt::format("{:.6g}", value); }

}  // namespace rankscope
