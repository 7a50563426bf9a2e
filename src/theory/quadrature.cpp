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

}  // namespace

const GaussLegendre& gauss_legendre() {
  static const GaussLegendre rule = compute_rule();
  return rule;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

}  // namespace rankscope
