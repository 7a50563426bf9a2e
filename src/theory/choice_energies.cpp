#include "theory/choice_energies.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>

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
// below_k(b). The latter are over below_0 here, so that a high power of them keeps its digits.
struct Node {
  double weight, log_below;
  Series density, below;
};

double log_normal_cdf(double a) { return a > 0 ? std::log1p(-normal_cdf(-a)) : std::log(normal_cdf(a)); }

// Beyond 13 the terms of degree 32 are below 1e-16: they fall as exp(-a^2 / 4) there.
constexpr double kReach = 13;

// Where N - 1 points stay below with a chance of e^-120. What lies further down counts for less than e^-60: a
// term is at most the root of the product of those at (a, a) and (b, b), all of which are positive there and
// add up to that chance.
double lowest(int64_t n) {
  const double log_chance = -120 / static_cast<double>(n - 1);
  double low = -kReach, high = kReach;
  while (high - low > 1e-3) {
    const double middle = (low + high) / 2;
    (log_normal_cdf(middle) < log_chance ? low : high) = middle;
  }
  return low;
}

std::vector<Node> nodes(int64_t n, int panels) {
  const GaussLegendre& rule = gauss_legendre();
  std::vector<Node> out;
  const double low = lowest(n), half = (kReach - low) / panels / 2;
  for (int p = 0; p < panels; ++p)
    for (size_t i = 0; i < GaussLegendre::kPoints; ++i) {
      const double a = low + (2 * p + 1) * half + half * rule.node[i], chance = normal_cdf(a);
      Node node{.weight = half * rule.weight[i], .log_below = log_normal_cdf(a), .density = {}, .below = {}};
      // Hermite polynomials of unit norm, times the density of a.
      double now = std::exp(-a * a / 2) / std::sqrt(2 * std::numbers::pi), before = 0;
      node.below[0] = 1;
      for (size_t k = 0; k < kDegrees; ++k) {
        const auto degree = static_cast<double>(k);
        node.density[k] = now;
        if (k + 1 < kDegrees) node.below[k + 1] = now / std::sqrt(degree + 1) / chance;
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

// The integrand is symmetric in its two places.
HermiteEnergies integrals(int64_t n, int panels) {
  const std::vector<Node> places = nodes(n, panels);
  const auto others = static_cast<double>(n - 1);
  HermiteEnergies out;
  for (size_t i = 0; i < places.size(); ++i) {
    Series row{};  // added up by itself: fewer roundings one on top of the other
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
      const double weight = (i == j ? 1 : 2) * static_cast<double>(n) * places[i].weight * places[j].weight *
                            std::exp(others * (places[i].log_below + places[j].log_below));
      for (size_t k = 0; k < kDegrees; ++k) {
        row[k] += weight * value[k];
        out.error[k] += std::abs(weight * value[k]);
      }
    }
    for (size_t k = 0; k < kDegrees; ++k) out.energy[k] += row[k];
  }
  // Every number is a sum of at most kDegrees products, so kDegrees roundings of the terms' sizes.
  constexpr double kRounding = kDegrees * std::numeric_limits<double>::epsilon() / 2;
  for (double& e : out.error) e *= kRounding;
  return out;
}

// S_k, in which the number of dimensions plays no part. The distance to what a coarser grid gives stands for
// the quadrature's error, which is far less.
HermiteEnergies hermite_energies(int64_t n) {
  constexpr int kPanels = 8;
  const HermiteEnergies coarse = integrals(n, kPanels);
  HermiteEnergies out = integrals(n, kPanels * 3 / 2);
  for (size_t k = 0; k < kDegrees; ++k) out.error[k] += std::abs(out.energy[k] - coarse.energy[k]);
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
    // (Gamma((d+1)/2) / Gamma(d/2))^2 / (d/2), from one or two dimensions upwards: the difference of two
    // logarithms of it would lose the digits of a large one.
    int64_t known = d % 2 == 0 ? 2 : 1;
    double log_first = std::log(known == 2 ? std::numbers::pi / 4 : 2 / std::numbers::pi);
    for (; known < d; known += 2)
      log_first += std::log1p(1 / (static_cast<double>(known) * static_cast<double>(known + 2)));
    diagonal_[1] = std::exp(log_first);
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
    const double energy = left.energy[l] / shares.diagonal(l);
    // A share is walked to in six roundings a degree.
    const double walked = 6 * static_cast<double>(l) * std::numeric_limits<double>::epsilon() / 2;
    const double error = left.error[l] / shares.diagonal(l) + walked * std::abs(energy);
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
