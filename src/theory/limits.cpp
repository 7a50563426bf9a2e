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

// The angle between a uniform point and the point opposite to x_i. The farthest of the others has the
// smallest such angle. An angle keeps its digits near that pole, where the cosine is -1 and has none to
// spare: in two dimensions a million points leave an angle of 1e-6.
class PoleAngle {
 public:
  explicit PoleAngle(int64_t d) : d_(static_cast<double>(d)), c_(density_at_equator(d)) {}

  double density(double angle) const { return c_ * std::pow(std::sin(angle), d_ - 2); }
  double below(double angle) const {  // P(one point's angle is smaller)
    return std::cos(angle) > 0 ? cap(angle) : 1 - cap(angle);
  }
  double log_above(double angle) const {  // log P(one point's angle is larger)
    return std::cos(angle) > 0 ? std::log1p(-cap(angle)) : std::log(cap(angle));
  }
  /// E cosine with x_i, over angles above this one: there the cosine is -cos(angle), and c sin^(d-2) cos has
  /// an elementary integral.
  double cosine_above(double angle) const { return c_ * std::pow(std::sin(angle), d_ - 1) / (d_ - 1); }

 private:
  // The smaller of the two caps into which a circle of latitude cuts the sphere. Near the equator one minus
  // the belt between it and its mirror image: the squared sine is 1 there and has lost the angle.
  double cap(double angle) const {
    const double sine = std::sin(angle), cosine = std::cos(angle), half = (d_ - 1) / 2;
    const bool near_equator = cosine * cosine * (half + 2.5) < 1.5;  // where incomplete_beta is direct
    return near_equator ? 0.5 - 0.5 * incomplete_beta(0.5, half, cosine * cosine)
                        : 0.5 * incomplete_beta(half, 0.5, sine * sine);
  }
  double d_, c_;
};

// Bisection for the angle from which on `passed` holds: that angle lies between the two.
struct Bracket {
  double before = 0, after = pi;
};

template <class Passed>
Bracket bracket(const Passed& passed) {
  Bracket out;
  for (int step = 0; step < 40; ++step) {  // to 3e-12: a millionth of the narrowest peak
    const double middle = (out.before + out.after) / 2;
    (passed(middle) ? out.after : out.before) = middle;
  }
  return out;
}

// The smallest of `others` independent angles. Its law is a peak that narrows as d or the number grows, so
// integrals run only between angles that it practically never leaves: fixed panels over all angles would step
// over the peak, and far from it the tails underflow.
class SmallestAngle {
 public:
  SmallestAngle(int64_t d, double others) : one_(d), others_(others) {
    // Left out is less than 1e-18 of the law on the near side and e^-50 on the far side.
    from_ = bracket([&](double angle) { return one_.below(angle) * others > 1e-18; }).before;
    to_ = bracket([&](double angle) { return one_.log_above(angle) * others < -50; }).after;
  }
  const PoleAngle& one() const { return one_; }

  /// Integral of f. With 32 panels of 20 points the peak is resolved to rounding.
  template <class Function>
  double integral(const Function& f) const {
    return integrate(from_, to_, 32, f);
  }
  template <class Function>
  double mean(const Function& f) const {
    return integral([&](double angle) {
      return others_ * one_.density(angle) * std::exp((others_ - 1) * one_.log_above(angle)) * f(angle);
    });
  }

 private:
  PoleAngle one_;
  double others_, from_, to_;
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
  if (n == 2) return {0.5, 0};  // the farthest point is the sum less x_i
  const auto tokens = static_cast<double>(n), others = tokens - 1;
  const SmallestAngle farthest(d, others);
  // f is the farthest point, m its cosine with x_i. This is 1 + m: it vanishes as points fill the sphere.
  const auto short_of_opposite = [](double angle) {
    const double sine = std::sin(angle / 2);
    return 2 * sine * sine;
  };
  // Across x_i the points are independent of the cosines c_j, so <f, x_j> has the mean of m c_j. Above its
  // minimum a cosine keeps its law: this is X, the mean of the sum of the other N - 2, given m.
  const auto sum_of_rest = [&](double angle) {
    return (others - 1) * farthest.one().cosine_above(angle) / std::exp(farthest.one().log_above(angle));
  };
  // All cosines have mean zero, so E X = -E m, and the sum of all points but x_i, f among them, has with f
  // the mean product 1 + E m X = E (1 + m)(1 + X): a mean of positive terms, in which nothing cancels.
  const double gap = farthest.mean(short_of_opposite);
  const double with_others =
      farthest.mean([&](double angle) { return short_of_opposite(angle) * (1 + sum_of_rest(angle)); });
  const double with_sum = with_others - (1 - gap);
  // x_i and the sum of the others are orthogonal in the mean, with squared norms 1 and N - 1. The first
  // catches (E m)^2 = (1 - gap)^2 of f; one minus that is gap (2 - gap).
  return {1 - with_sum * with_sum / tokens, gap * (2 - gap) - with_others * with_others / others};
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

double farthest_temperature_coefficient(int64_t d, int64_t n) {
  if (n < 3) return 0;
  const double others = static_cast<double>(n) - 1;
  const SmallestAngle farthest(d, others);
  // Two points at the same angle differ by 2 sin^2 in the mean square. Per unit of cosine their density is
  // density^2 / sin^2, and the cosine runs by sin: together 2 density^2 sin.
  return kTieCost * farthest.integral([&](double angle) {
    const double density = farthest.one().density(angle);
    return others * (others - 1) * density * density *
           std::exp((others - 2) * farthest.one().log_above(angle)) * 2 * std::sin(angle);
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
