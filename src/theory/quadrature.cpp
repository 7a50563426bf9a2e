#include "theory/quadrature.h"

namespace rankscope {
namespace {

GaussLegendre compute_rule() {
  constexpr int n = GaussLegendre::kPoints;
  GaussLegendre rule{};
  for (int i = 0; i < n; ++i) {
    double x = std::cos(std::numbers::pi * (i + 0.75) / (n + 0.5)), slope = 0;
    for (int step = 0; step < 8; ++step) {  // quadratic from a guess that is good to 1e-3
      double p = 1, before = 0;
      for (int k = 0; k < n; ++k) {
        const double after = ((2 * k + 1) * x * p - k * before) / (k + 1);
        before = p;
        p = after;
      }
      slope = n * (x * p - before) / (x * x - 1);
      x -= p / slope;
    }
    rule.node[static_cast<size_t>(i)] = x;
    rule.weight[static_cast<size_t>(i)] = 2 / ((1 - x * x) * slope * slope);
  }
  return rule;
}

// The continued fraction of I_x(a, b), by Lentz's method; it converges fast for x below (a+1)/(a+b+2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kAccuracy = 1e-15;
  const auto not_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m < 100'000; ++m) {
    const double k = m;
    const double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
    d = 1 / not_zero(1 + even * d);
    c = not_zero(1 + even / c);
    value *= d * c;
    const double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
    d = 1 / not_zero(1 + odd * d);
    c = not_zero(1 + odd / c);
    value *= d * c;
    if (std::abs(d * c - 1) < kAccuracy) break;
  }
  return value;
}

}  // namespace

const GaussLegendre& gauss_legendre() {
  static const GaussLegendre rule = compute_rule();
  return rule;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

}  // namespace rankscope
