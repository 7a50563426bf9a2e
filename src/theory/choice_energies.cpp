#include "theory/choice_energies.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>

#include "theory/harmonics.h"
#include "theory/quadrature.h"

namespace rankscope {
namespace {

constexpr size_t kDegrees = 33;
constexpr double kMostError = 1e-6;  // a degree whose energy is known to less than this is left out

using Series = std::array<double, kDegrees>;  // coefficients of a power series in the correlation

Series product(const Series& a, const Series& b) {
  Series out{};
  for (size_t i = 0; i < kDegrees; ++i)
    for (size_t j = 0; i + j < kDegrees; ++j) out[i + j] += a[i] * b[j];
  return out;
}

// One place of the quadrature. Mehler's series: with correlation c the density of two normals at (a, b) is
// sum_k c^k density_k(a) density_k(b), and the chance that both stay below is sum_k c^k below_k(a)
// below_k(b).
struct Node {
  double weight;
  Series density, below;
};

// Beyond 13 the terms of degree 32 are below 1e-16: they fall as exp(-a^2 / 4) there.
std::vector<Node> nodes() {
  constexpr double kReach = 13;
  constexpr int kPanels = 8;
  const GaussLegendre& rule = gauss_legendre();
  std::vector<Node> out;
  const double half = kReach / kPanels;
  for (int p = 0; p < kPanels; ++p)
    for (size_t i = 0; i < GaussLegendre::kPoints; ++i) {
      const double a = -kReach + (2 * p + 1) * half + half * rule.node[i];
      Node node{.weight = half * rule.weight[i], .density = {}, .below = {}};
      // Hermite polynomials of unit norm, times the density of a.
      double now = std::exp(-a * a / 2) / std::sqrt(2 * std::numbers::pi), before = 0;
      node.below[0] = normal_cdf(a);
      for (size_t k = 0; k < kDegrees; ++k) {
        const auto degree = static_cast<double>(k);
        node.density[k] = now;
        if (k + 1 < kDegrees) node.below[k + 1] = now / std::sqrt(degree + 1);
        const double after = (a * now - std::sqrt(degree) * before) / std::sqrt(degree + 1);
        before = now;
        now = after;
      }
      out.push_back(node);
    }
  return out;
}

struct HermiteEnergies {
  Series energy{}, error{};
};

// S_k, in which the number of dimensions plays no part. The integrand is symmetric in its two places.
HermiteEnergies hermite_energies(int64_t n) {
  const std::vector<Node> places = nodes();
  HermiteEnergies out;
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t j = 0; j <= i; ++j) {
      Series value, power;
      for (size_t k = 0; k < kDegrees; ++k) {
        value[k] = places[i].density[k] * places[j].density[k];
        power[k] = places[i].below[k] * places[j].below[k];
      }
      for (auto rest = static_cast<uint64_t>(n - 1); rest > 0; rest >>= 1) {
        if ((rest & 1) != 0) value = product(value, power);
        if (rest > 1) power = product(power, power);
      }
      const double weight = (i == j ? 1 : 2) * static_cast<double>(n) * places[i].weight * places[j].weight;
      for (size_t k = 0; k < kDegrees; ++k) {
        out.energy[k] += weight * value[k];
        out.error[k] += std::abs(weight * value[k]);
      }
    }
  // Every number is a sum of at most kDegrees products, so kDegrees roundings of the terms' sizes.
  constexpr double kRounding = kDegrees * std::numeric_limits<double>::epsilon() / 2;
  for (double& e : out.error) e *= kRounding;
  return out;
}

// Sweeps ask for the same number of points again and again.
HermiteEnergies known_hermite_energies(int64_t n) {
  static std::mutex mutex;
  static std::map<int64_t, HermiteEnergies> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(n);
  return found != known.end() ? found->second : known.emplace(n, hermite_energies(n)).first->second;
}

// c_{k,l}: which part of a harmonic of degree l, as a function of a Gaussian's direction, has Hermite degree
// k = l + 2j. The radial integral against a Laguerre polynomial gives
// c = (Gamma((l+d)/2) (l/2)_j)^2 / (Gamma(d/2) Gamma(l + d/2 + j) j!), walked by its ratios.
class HermiteShares {
 public:
  explicit HermiteShares(int64_t d) : d_(static_cast<double>(d)) {
    diagonal_[0] = 1;
    diagonal_[1] = std::exp(2 * (log_gamma((d_ + 1) / 2) - log_gamma(d_ / 2)) - std::log(d_ / 2));
    for (size_t l = 2; l < kDegrees; ++l) {
      const double m = static_cast<double>(l) - 2;
      diagonal_[l] = diagonal_[l - 2] * (m + d_) / (2 * m + d_) * (m + d_) / (2 * m + d_ + 2);
    }
  }
  double diagonal(size_t l) const { return diagonal_[l]; }
  /// c_{k,l} for k = l, l + 2, ...
  template <class Visit>
  void walk(size_t l, const Visit& visit) const {
    double c = diagonal_[l];
    const auto degree = static_cast<double>(l);
    for (size_t k = l; k < kDegrees; k += 2) {
      visit(k, c);
      const double j = static_cast<double>(k - l) / 2;
      c *= (degree / 2 + j) * (degree / 2 + j) / ((j + 1) * (degree + d_ / 2 + j));
    }
  }

 private:
  double d_;
  Series diagonal_{};
};

}  // namespace

ChoiceEnergies choice_energies(int64_t d, int64_t n) {
  HermiteEnergies left = known_hermite_energies(n);  // what degrees below l do not explain
  const HermiteShares shares(d);
  ChoiceEnergies out;
  for (size_t l = 0; l < kDegrees; ++l) {
    const double energy = left.energy[l] / shares.diagonal(l), error = left.error[l] / shares.diagonal(l);
    if (error > kMostError) break;
    out.energy.push_back(energy);
    out.error.push_back(error);
    shares.walk(l, [&](size_t k, double c) {
      left.energy[k] -= c * energy;
      left.error[k] += c * error;
    });
  }
  return out;
}

}  // namespace rankscope
