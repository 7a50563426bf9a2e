#include "base/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace rankscope {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
}  // namespace

Estimate arithmetic_mean(std::span<const double> x) {
  const auto n = static_cast<double>(x.size());
  if (x.empty()) return {kNan, kNan};
  double sum = 0;
  for (const double v : x) sum += v;
  const double mean = sum / n;
  if (x.size() < 2) return {mean, kNan};
  if (!std::isfinite(mean)) return {mean, kNan};
  if (std::all_of(x.begin(), x.end(), [&](double v) { return v == x.front(); }))
    return {x.front(), 0};  // the rounding of their sum is no scatter
  double most = 0;
  for (const double v : x) most = std::max(most, std::fabs(v - mean));
  const double unit = most > 1e150 ? most : 1;  // squares of larger ones are beyond what a double holds
  double squares = 0;
  for (const double v : x) squares += (v - mean) / unit * ((v - mean) / unit);
  return {mean, unit * std::sqrt(squares / (n - 1) / n)};
}

std::vector<double> finite_logs(std::vector<double> logs) {
  const auto known = [](double log) { return log != -kInfinite; };
  if (std::none_of(logs.begin(), logs.end(), known)) return logs;
  double sum = 0, count = 0, least = kInfinite;
  for (const double log : logs)
    if (known(log)) sum += log, ++count, least = std::min(least, log);
  least = std::min(least, sum / count - 20 * std::numbers::ln2);  // what rounding leaves of float32
  for (double& log : logs)
    if (!known(log)) log = least;
  return logs;
}

std::vector<double> logs_of(std::span<const double> x) {
  std::vector<double> logs, known;
  for (const double v : x) {
    logs.push_back(std::log(v));
    if (v > 0) known.push_back(logs.back());
  }
  if (known.empty()) return logs;
  const double middle = 2 * known.size() > x.size() ? median(logs) : median(known);
  const double least = middle - 20 * std::numbers::ln2;  // what rounding leaves of float32
  for (double& log : logs) log = std::max(log, least);
  return logs;
}

Estimate geometric_mean(std::span<const double> x) {
  const Estimate e = arithmetic_mean(logs_of(x));
  return {std::exp(e.value), std::exp(e.value) * e.stderr_};
}

double median(std::span<const double> x) {
  if (x.empty()) return kNan;
  std::vector<double> v(x.begin(), x.end());
  const size_t mid = v.size() / 2;
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(mid), v.end());
  if (v.size() % 2 == 1) return v[mid];
  return 0.5 * (v[mid] + *std::max_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(mid)));
}

double least_squares_slope(std::span<const double> x, std::span<const double> y) {
  double mean_x = 0, mean_y = 0, covariance = 0, variance = 0;
  const auto n = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) mean_x += x[i] / n, mean_y += y[i] / n;
  for (size_t i = 0; i < x.size(); ++i) {
    covariance += (x[i] - mean_x) * (y[i] - mean_y);
    variance += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return variance > 0 ? covariance / variance : kNan;
}

double quantile(std::span<const double> x, double q) {
  if (x.empty()) return kNan;
  std::vector<double> v(x.begin(), x.end());
  std::sort(v.begin(), v.end());
  const double at = q * static_cast<double>(v.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, v.size() - 1);
  return v[low] + (at - static_cast<double>(low)) * (v[high] - v[low]);
}

}  // namespace rankscope
