// Integrals of smooth functions of one variable, and means over an angle on the sphere.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "theory/harmonics.h"

namespace rankscope {

struct GaussLegendre {
  static constexpr int kPoints = 20;
  std::array<double, kPoints> node, weight;  // on [-1, 1]
};

/// Computed once, by Newton's method.
const GaussLegendre& gauss_legendre();

/// Gauss-Legendre on each of `panels` equal parts of [a, b].
template <class Function>
double integrate(double a, double b, int panels, const Function& f) {
  const GaussLegendre& rule = gauss_legendre();
  const double half = (b - a) / panels / 2;
  double sum = 0;
  for (int p = 0; p < panels; ++p) {
    const double middle = a + (2 * p + 1) * half;
    for (int i = 0; i < GaussLegendre::kPoints; ++i)
      sum += rule.weight[static_cast<size_t>(i)] * f(middle + half * rule.node[static_cast<size_t>(i)]);
  }
  return sum * half;
}

/// E f(phi) for phi = asin |t|, t one coordinate of a uniform point of the sphere in R^d: how far a point is
/// from the equator. `scale` is the angle over which f changes near 0; the panels double from there on.
template <class Function>
double mean_over_latitude(int64_t d, double scale, const Function& f) {
  constexpr double kEnd = std::numbers::pi / 2;
  const double power = static_cast<double>(d - 2);
  const double c = 2 * density_at_equator(d);
  const auto integrand = [&](double phi) { return std::pow(std::cos(phi), power) * f(phi); };
  // cos^(d-2) is below e^-800 from here on.
  const double end = std::min(kEnd, 40 / std::sqrt(static_cast<double>(d)));
  double sum = 0;
  double from = 0, to = std::min({scale, 1 / std::sqrt(static_cast<double>(d)), end});
  while (from < end) {
    sum += integrate(from, to, 4, integrand);
    from = to;
    to = std::min(2 * to, end);
  }
  return c * sum;
}

/// Standard normal distribution function.
double normal_cdf(double x);

}  // namespace rankscope
