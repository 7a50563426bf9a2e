#include "theory/square_wave.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "theory/harmonics.h"
#include "theory/quadrature.h"

namespace rankscope {
namespace {

using std::numbers::pi;

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// E exp(-a v) for v ~ Beta(free/2, rank/2), times a^(free/2) Gamma(rank/2) / Gamma((free+rank)/2): then it
// tends to one as a grows. With z = a v it is the integral of z^(free/2-1) e^-z (1-z/a)^(rank/2-1) /
// Gamma(free/2).
double scaled_laplace(double a, double free, double rank) {
  const double log_scale = std::log(2.0) - log_gamma(free / 2);
  const double end = std::sqrt(a), cut = std::sqrt(free / 2) + 8;  // in sqrt(z); e^-64 and less beyond
  if (cut < end)
    return integrate(0, cut, 200, [&](double root) {
      const double z = root * root;
      return std::exp(log_scale + (free - 1) * std::log(root) - z + (rank / 2 - 1) * std::log1p(-z / a));
    });
  // The whole interval: v = sin^2 is smooth at both ends.
  return integrate(0, pi / 2, 400, [&](double angle) {
    const double root = end * std::sin(angle);
    return end * std::exp(log_scale + (free - 1) * std::log(root) - root * root +
                          (rank - 1) * std::log(std::cos(angle)));
  });
}

}  // namespace

SquareWave::SquareWave(int64_t d) : SquareWave(d, 1 / static_cast<double>(d)) {}

SquareWave::SquareWave(int64_t d, double spacing) : d_(d), reach_(d * d), spacing_(spacing) {}

double SquareWave::sum(double t) const {
  double total = 0;
  for (int64_t i = -reach_; i <= reach_; ++i)
    total += (i % 2 == 0 ? 1 : -1) * sign(t - static_cast<double>(i) * spacing_);
  return total;
}

double SquareWave::at(double t) const {
  const double outside = reach_ % 2 == 0 ? 1 : -1;  // right of every jump the sum alternates to this
  const auto reach = static_cast<double>(reach_);
  if (t > reach * spacing_) return outside;
  if (t < -reach * spacing_) return -outside;
  double jump = std::floor(t / spacing_);
  // t / spacing may round across a jump: compare as the sum does.
  if (jump * spacing_ > t) --jump;
  if ((jump + 1) * spacing_ <= t) ++jump;
  if (jump * spacing_ == t) return 0;
  return std::fmod(jump, 2) == 0 ? 1 : -1;
}

double SquareWave::log_captured(int64_t r) const {
  if (r >= d_) return 0;
  const auto rank = static_cast<double>(r), free = static_cast<double>(d_ - r);
  const double frequency = std::numbers::sqrt2 * pi / spacing_;
  const double base = frequency * frequency;
  double sum = 0;
  for (double k = 1; k < 2000; k += 2) {
    const double term = 8 / (pi * pi * k * k) * std::pow(k, -free) * scaled_laplace(k * k * base, free, rank);
    sum += term;
    if (term < 1e-16 * sum) break;
  }
  return std::log(sum) + log_gamma((free + rank) / 2) - log_gamma(rank / 2) - free / 2 * std::log(base);
}

double SquareWave::log10_weight_for(int64_t r, double error) const {
  return (std::log((energy() - error) / 2) - 0.5 * (log_captured(r) - std::log(2.0))) / std::log(10.0);
}

}  // namespace rankscope
