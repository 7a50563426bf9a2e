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
// tends to one as a grows. With z = a v it is the integral of
// z^(free/2-1) e^-z (1-z/a)^(rank/2-1) / Gamma(free/2).
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

// W_l = 1/2 N(d, l) E lambda_l^2, lambda_l = E f*(sqrt(2) |y| t) P_l(t) for one coordinate t of a uniform
// point. By parts only the jumps count: where f* rises by J at t, lambda_l gains
// J c (1 - t^2)^((d-1)/2) / (d - 1) times the polynomial of degree l - 1 in dimension d + 2, where
// c (1 - t^2)^((d-3)/2) is the density of t.
std::vector<double> SquareWave::degree_energies(int64_t last) const {
  const auto d = static_cast<double>(d_);
  const double front = density_at_equator(d_) / (d - 1);
  const double log_chi = -(d / 2 - 1) * std::log(2.0) - log_gamma(d / 2);
  std::vector<double> energies(static_cast<size_t>(last) + 1, 0.0), lambda(energies.size());
  const auto add = [&](double length, double weight) {
    std::fill(lambda.begin(), lambda.end(), 0.0);
    const double step = spacing_ / (std::numbers::sqrt2 * length);
    const auto inside = static_cast<int64_t>(std::min(static_cast<double>(reach_), 1 / step));
    for (int64_t i = -inside; i <= inside; ++i) {
      const double t = static_cast<double>(i) * step;
      const double rise = (i % 2 == 0 ? 2 : -2) * front * std::pow(std::max(0.0, 1 - t * t), (d - 1) / 2);
      Gegenbauer p(d_ + 2, t);
      for (size_t l = 1; l < lambda.size(); ++l, p.next()) lambda[l] += rise * p.value();
    }
    for (size_t l = 1; l < lambda.size(); ++l) energies[l] += weight * lambda[l] * lambda[l];
  };
  // The length of y is within 7 of sqrt(d) but for e^-24; Gauss-Legendre on 40 parts of that.
  constexpr int kPanels = 40;
  constexpr double kReach = 7;
  const GaussLegendre& rule = gauss_legendre();
  const double from = std::max(0.0, std::sqrt(d) - kReach),
               half = (std::sqrt(d) + kReach - from) / kPanels / 2;
  for (int p = 0; p < kPanels; ++p)
    for (size_t i = 0; i < GaussLegendre::kPoints; ++i) {
      const double length = from + (2 * p + 1 + rule.node[i]) * half;
      add(length,
          half * rule.weight[i] * std::exp(log_chi + (d - 1) * std::log(length) - length * length / 2));
    }
  for (size_t l = 1; l < energies.size(); ++l)
    energies[l] *= 0.5 * std::exp(log_harmonic_count(d_, static_cast<int64_t>(l)));
  return energies;
}

double SquareWave::lower_bound(int64_t r, double heads) const {
  if (r >= d_) return 0;
  constexpr int64_t kLast = 400;
  const auto rank = static_cast<double>(r);
  const auto share = [&](int64_t degree) {
    const auto l = static_cast<double>(degree);
    return std::min(1.0, heads * std::exp(log_gamma(l + rank) - log_gamma(l + 1) - log_gamma(rank) -
                                          log_harmonic_count(d_, degree)));
  };
  const std::vector<double> energies = degree_energies(kLast);
  const double above = share(kLast + 1);
  double bound = energy() * (1 - above);
  for (int64_t l = 1; l <= kLast; ++l) bound -= energies[static_cast<size_t>(l)] * (share(l) - above);
  return std::max(0.0, bound);
}

}  // namespace rankscope
