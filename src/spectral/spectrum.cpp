#include "spectral/spectrum.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rankscope {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Sum of (sigma / sigma_1)^power: scaled first, so that nothing overflows.
double scaled_sum(const Spectrum& s, int power) {
  double sum = 0;
  for (const double sigma : s.sigma) {
    const double r = sigma / s.largest();
    sum += power == 1 ? r : power == 2 ? r * r : (r * r) * (r * r);
  }
  return sum;
}

template <class Formula>
double of_nonzero(const Spectrum& s, const Formula& formula) {
  if (std::isnan(s.largest())) return kNan;
  return s.largest() > 0 ? formula() : 0.0;
}

}  // namespace

double effective_rank(const Spectrum& s) {
  return of_nonzero(s, [&] {
    const double total = scaled_sum(s, 1) * s.largest();
    double entropy = 0;
    for (const double sigma : s.sigma)
      if (const double p = sigma / total; p > 0) entropy -= p * std::log(p);
    return std::exp(entropy);
  });
}

double effective_rank_rel(const Spectrum& s) {
  const auto full = static_cast<double>(std::min(s.rows, s.cols));
  return full > 0 ? effective_rank(s) / full : 0.0;
}

double stable_rank(const Spectrum& s) {
  return of_nonzero(s, [&] { return scaled_sum(s, 2); });
}

double stable_rank_gram(const Spectrum& s) {
  return of_nonzero(s, [&] { return scaled_sum(s, 4); });
}

double spectral_gap(const Spectrum& s) { return s.sigma.size() > 1 ? s.sigma[0] - s.sigma[1] : s.largest(); }

NumericalRank numerical_rank(const Spectrum& s) {
  const double tolerance = static_cast<double>(std::max(s.rows, s.cols)) * s.epsilon * s.largest();
  if (std::isnan(tolerance)) return {kNan, kNan};
  const auto above = std::count_if(s.sigma.begin(), s.sigma.end(), [&](double v) { return v > tolerance; });
  return {static_cast<double>(above), tolerance};
}

double frobenius(const Spectrum& s) {
  return of_nonzero(s, [&] { return s.largest() * std::sqrt(scaled_sum(s, 2)); });
}

}  // namespace rankscope
