#include "verdict/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rankscope::verdict {
namespace {

// The continued fraction of the incomplete beta function, by Lentz's method: terms until they change nothing.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
  double value = d;
  for (int m = 1; m < 500; ++m) {
    for (const double term : {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                              -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))}) {
      d = 1 + term * d;
      c = 1 + term / c;
      d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
      if (std::fabs(c) < kTiny) c = kTiny;
      value *= c * d;
    }
    if (std::fabs(c * d - 1) < 1e-15) break;
  }
  return value;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_tail(double t, double freedom) {
  if (std::isinf(t)) return t > 0 ? 0.0 : 1.0;
  const double half = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
  return t > 0 ? half : 1 - half;
}

std::vector<bool> benjamini_hochberg(std::span<const double> p, double level) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  size_t rejected = 0;
  for (size_t i = 0; i < order.size(); ++i)
    if (p[order[i]] <= level * static_cast<double>(i + 1) / static_cast<double>(p.size())) rejected = i + 1;
  std::vector<bool> out(p.size(), false);
  for (size_t i = 0; i < rejected; ++i) out[order[i]] = true;
  return out;
}

}  // namespace rankscope::verdict
