#include "theory/limits.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/philox.h"
#include "theory/harmonics.h"
#include "theory/quadrature.h"

namespace rankscope {
namespace {

using std::numbers::pi;

// Integral of sigma(-u)^2 over u > 0: what a tie between two points costs, per unit of beta.
const double kTieCost = std::numbers::ln2 - 0.5;

// The law of one cosine between independent uniform points, at t = sin(phi).
struct Cosine {
  explicit Cosine(int64_t width) : d(static_cast<double>(width)), c(density_at_equator(width)) {}
  double d, c;

  double density(double phi) const { return c * std::pow(std::cos(phi), d - 3); }  // in t
  double above(double phi) const {                                                 // P(cosine > t)
    const double tail = 0.5 * incomplete_beta((d - 1) / 2, 0.5, std::cos(phi) * std::cos(phi));
    return phi > 0 ? tail : 1 - tail;
  }
  double mass_above(double phi) const {  // E cosine 1[cosine > t]
    return c * std::pow(std::cos(phi), d - 1) / (d - 1);
  }
  /// Integral over t of f(phi).
  template <class Function>
  double over(const Function& f) const {
    const double end = std::min(pi / 2, 40 / std::sqrt(d));
    return integrate(-end, end, 128, [&](double phi) { return f(phi) * std::cos(phi); });
  }
};

// A cosine drawn from its law: one Gaussian against the norm of d. A chi-square of even degrees is a sum of
// exponentials, that is the logarithm of a product.
class CosineSampler {
 public:
  CosineSampler(int64_t d, uint64_t seed) : d_(d), words_{.seed = seed, .stream = kStream} {}
  double draw() {
    const double first = words_.normal(index_++);
    double rest = 0, product = 1;
    for (int64_t k = 0; k < (d_ - 1) / 2; ++k) {
      product *= words_.uniform(index_++);
      if (product < 1e-200) {
        rest -= 2 * std::log(product);
        product = 1;
      }
    }
    rest -= 2 * std::log(product);
    if ((d_ - 1) % 2 == 1) {
      const double odd = words_.normal(index_++);
      rest += odd * odd;
    }
    return first / std::sqrt(first * first + rest);
  }

 private:
  static constexpr uint32_t kStream = 0x7468656f;
  int64_t d_;
  Philox words_;
  uint64_t index_ = 0;
};

}  // namespace

double nearest_floor(int64_t n) { return 1 - 1 / static_cast<double>(n); }

FarthestFloors farthest_floors(int64_t d, int64_t n) {
  const Cosine law(d);
  const auto tokens = static_cast<double>(n), others = tokens - 1;
  // f is the farthest point, m its cosine. The parts of the points that are orthogonal to x_i are independent
  // of the cosines, so E<f, x_j> = E m c_j; above its minimum a cosine keeps its law.
  const auto moment = [&](auto value) {
    return law.over([&](double phi) {
      return others * law.density(phi) * std::pow(law.above(phi), others - 1) * value(phi);
    });
  };
  const double with_self = moment([](double phi) { return std::sin(phi); });
  double with_sum = 1 + with_self;
  if (n > 2)
    with_sum += moment(
        [&](double phi) { return std::sin(phi) * (others - 1) * law.mass_above(phi) / law.above(phi); });
  // Normal equations with E<x_i, x_i> = 1, E<x_i, s> = 1, E<s, s> = N.
  const double caught =
      (tokens * with_self * with_self - 2 * with_self * with_sum + with_sum * with_sum) / others;
  return {1 - with_sum * with_sum / tokens, 1 - caught};
}

double one_hard_head_error(int64_t d) {
  // b = 1/2 + 1/2 sum N lambda^3 P_l(<q,k>) and E P_l^2 = 1/N.
  double caught = 0.25;
  for (SignEnergies e(d); e.degree() < 1000; e.next()) {
    const double lambda = sign_eigenvalue(d, e.degree());
    caught += 0.25 * e.energy() * std::pow(lambda, 4);
  }
  return 1 - caught;
}

double soft_nearest_error(int64_t d, double beta) {
  const double slope = beta * std::numbers::sqrt2;
  return mean_over_latitude(d, 1 / slope, [slope](double phi) {
    const double weight = 1 / (1 + std::exp(slope * std::sin(phi)));
    return 2 * weight * weight;
  });
}

double nearest_temperature_coefficient(int64_t d, int64_t n) {
  // y = g / |g|: the density of the gap between the two largest of N Gaussians, at zero, over E 1/|g|.
  const auto points = static_cast<double>(n);
  const double gap = integrate(-40, 40, 400, [points](double x) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * pi);
    return points * (points - 1) * density * density * std::pow(normal_cdf(x), points - 2);
  });
  const double inverse_norm = std::sqrt(0.5 / pi) / density_at_equator(d);
  return kTieCost * 2 * gap / inverse_norm;
}

double farthest_temperature_coefficient(int64_t d, int64_t n) {
  const Cosine law(d);
  const double others = static_cast<double>(n) - 1;
  if (n < 3) return 0;
  return kTieCost * law.over([&](double phi) {
    const double density = law.density(phi), cosine = std::sin(phi);
    return others * (others - 1) * density * density * std::pow(law.above(phi), others - 2) *
           (2 - 2 * cosine * cosine);
  });
}

Estimate soft_farthest_error(int64_t d, int64_t n, double beta, int64_t samples, uint64_t seed) {
  CosineSampler sampler(d, seed);
  std::vector<double> errors(static_cast<size_t>(samples)), cosine(static_cast<size_t>(n));
  for (double& error : errors) {
    cosine[0] = 1;  // the point itself
    for (size_t j = 1; j < cosine.size(); ++j) cosine[j] = sampler.draw();
    const auto farthest = std::min_element(cosine.begin(), cosine.end());
    double total = 0;
    for (const double c : cosine) total += std::exp(-beta * (c - *farthest));
    // Along x_i, and across it, where the points are independent and have no mean.
    double along = *farthest, across = 0;
    for (const double& c : cosine) {
      const double weight = std::exp(-beta * (c - *farthest)) / total;
      along -= weight * c;
      const double off = (&c == &*farthest ? 1 : 0) - weight;
      across += off * off * (1 - c * c);
    }
    error = along * along + across;
  }
  return arithmetic_mean(errors);
}

}  // namespace rankscope
