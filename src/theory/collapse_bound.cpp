#include "theory/collapse_bound.h"

#include <cmath>

namespace rankscope {

double cubic_constant(double gamma, double beta, double heads, double scale, double tokens) {
  return 8 * (1 - 1 / tokens) * gamma * beta * heads * scale;
}

double log_collapse_bound(double c, double log_r0, int layers) {
  if (layers == 0) return log_r0;
  if (c == 0 || log_r0 == -INFINITY) return -INFINITY;  // nothing is left, and both logarithms are infinite
  const double half = 0.5 * std::log(c);
  return std::pow(3.0, layers) * (half + log_r0) - half;
}

double collapse_margin(double c, double log_r0) { return std::exp(0.5 * std::log(c) + log_r0); }

}  // namespace rankscope
