#include "theory/limits.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/philox.h"
#include "theory/harmonics.h"
#include "theory/pole_angle.h"
#include "theory/quadrature.h"

namespace rankscope {
namespace {

using std::numbers::pi;

// Integral of sigma(-u)^2 over u > 0: what a tie between two points costs, per unit of beta.
const double kTieCost = std::numbers::ln2 - 0.5;

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

// One minus the cosine with the pole: it vanishes as points fill the sphere.
double short_of_pole(double angle) {
  const double sine = std::sin(angle / 2);
  return 2 * sine * sine;
}

// E <f, sum_j x_j> over all points among which f is the one nearest to the pole. Across the pole's direction
// points are independent of their cosines c_j with it, so <f, x_j> has the mean of m c_j, m that of f. Below
// its maximum a cosine keeps its law: X, the mean of the sum of the others, given m, is less than zero. All
// cosines have mean zero, so E X = -E m, and the product is 1 + E m X = E (1 - m)(1 - X): a mean of positive
// terms, in which nothing cancels.
double product_with_sum(const SmallestAngle& nearest) {
  return nearest.mean([&](double angle) {
    const double rest =
        (nearest.points() - 1) * nearest.one().cosine_above(angle) / std::exp(nearest.one().log_above(angle));
    return short_of_pole(angle) * (1 + rest);
  });
}

}  // namespace

double nearest_floor(int64_t n) { return 1 - 1 / static_cast<double>(n); }

FarthestFloors farthest_floors(int64_t d, int64_t n) {
  if (n == 2) return {0.5, 0};  // the farthest point is the sum less x_i
  const auto tokens = static_cast<double>(n), others = tokens - 1;
  const SmallestAngle farthest(d, others);
  const double gap = farthest.mean(short_of_pole), with_others = product_with_sum(farthest);
  const double with_sum = with_others - (1 - gap);
  // x_i and the sum of the others are orthogonal in the mean, with squared norms 1 and N - 1. The first
  // catches (E m)^2 = (1 - gap)^2 of f, m its cosine with x_i; one minus that is gap (2 - gap).
  return {1 - with_sum * with_sum / tokens, gap * (2 - gap) - with_others * with_others / others};
}

double independent_floor(int64_t d, int64_t n) {
  const auto points = static_cast<double>(n);
  const double with_sum = product_with_sum(SmallestAngle(d, points));
  return 1 - with_sum * with_sum / points;
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
  const double gap = integrate(-20, 20, 200, [points](double x) {  // exp(-x^2) is e^-400 at the ends
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * pi);
    // Near one the distribution function has no digits for what is missing, and the power asks for them.
    const double log_below = x > 0 ? std::log1p(-normal_cdf(-x)) : std::log(normal_cdf(x));
    return points * (points - 1) * density * density * std::exp((points - 2) * log_below);
  });
  const double inverse_norm = std::sqrt(0.5 / pi) / density_at_equator(d);
  return kTieCost * 2 * gap / inverse_norm;
}

double independent_temperature_coefficient(int64_t d, int64_t n) {
  const auto points = static_cast<double>(n);
  const SmallestAngle nearest(d, points);
  // Two points at the same angle differ by 2 sin^2 in the mean square. Per unit of cosine their density is
  // density^2 / sin^2, and the cosine runs by sin: together 2 density^2 sin.
  return kTieCost * nearest.integral([&](double angle) {
    const double density = nearest.one().density(angle);
    return points * (points - 1) * density * density *
           std::exp((points - 2) * nearest.one().log_above(angle)) * 2 * std::sin(angle);
  });
}

double farthest_temperature_coefficient(int64_t d, int64_t n) {
  return n < 3 ? 0 : independent_temperature_coefficient(d, n - 1);  // the point itself is never chosen
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
