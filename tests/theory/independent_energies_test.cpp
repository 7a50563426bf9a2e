#include "theory/independent_energies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/philox.h"
#include "theory/choice_bound.h"
#include "theory/harmonics.h"

namespace rankscope {
namespace {

TEST(IndependentEnergies, OfTwoPointsAreHalfTheEnergiesOfTheSign) {
  // x_1 - x_2 points anywhere, whatever its length, and its mean square is 2.
  for (const int64_t d : {3, 16, 4096}) {
    const ChoiceEnergies e = independent_energies(d, 2);
    ASSERT_GE(e.energy.size(), 4u) << d;
    for (size_t l = 0; l < e.energy.size(); ++l) {
      const double truth = l == 0 ? 0.5 : sign_energy(d, static_cast<int64_t>(l)) / 2;
      EXPECT_NEAR(e.energy[l], truth, e.error[l] + 1e-12) << d << " " << l;
    }
  }
}

TEST(IndependentEnergies, AreEnergies) {
  for (const auto& [d, n] :
       std::vector<std::pair<int64_t, int64_t>>{{3, 5}, {64, 16}, {16, 1'000'000}, {65536, 1000}}) {
    const ChoiceEnergies e = independent_energies(d, n);
    ASSERT_GE(e.energy.size(), 3u) << d << " " << n;
    double sum = 0;
    for (size_t l = 0; l < e.energy.size(); ++l) {
      EXPECT_GE(e.energy[l], -e.error[l]) << d << " " << n << " " << l;
      EXPECT_LE(e.error[l], 1e-5);
      sum += e.energy[l];
    }
    EXPECT_LT(sum, 1 + 1e-5) << d << " " << n;
  }
}

TEST(IndependentEnergies, ApproachThoseOfOrthonormalPointsAsDimensionsGrow) {
  // Cosines of independent points have a variance of 1/d: four times the dimensions, a quarter of the
  // distance, up to what falls with its square (some 30 times as large in degree 4, so 30 / 256 of a
  // quarter).
  const auto distance = [](int64_t d, size_t l) {
    return independent_energies(d, 8).energy[l] - choice_energies(d, 8).energy[l];
  };
  for (size_t l = 0; l < 5; ++l) {
    EXPECT_NEAR(distance(1024, l) / distance(256, l), 0.25, 0.03) << l;
    EXPECT_LT(std::abs(distance(1024, l)), 0.005) << l;
  }
}

// Another quadrature, with the caps' common part computed in another way: roots at the ends of its integrand
// in odd dimensions once left errors far above the error bar.
TEST(IndependentEnergies, GiveBoundsInOddDimensionsThatAnotherQuadratureGives) {
  struct Row {
    int64_t d, n;
    double heads, bound, known_to;
  };
  for (const Row& row : {Row{3, 100, 3, .03404539, 5e-9}, {3, 1000, 1, .6679271239, 1e-10}}) {
    const ChoiceBound bound(row.d, 1, independent_energies(row.d, row.n));
    const double error = bound.error_bar(row.heads);
    EXPECT_NEAR(bound.at(row.heads) + error, row.bound, error + row.known_to) << row.d << " " << row.n;
    EXPECT_LT(error, 1e-8);
  }
}

// The point nearest to y and that nearest to y', drawn as they are.
TEST(IndependentEnergies, AreWhatDrawingPointsGives) {
  constexpr size_t d = 6, n = 4;
  constexpr int64_t draws = 100'000;
  using Point = std::array<double, d>;
  const Philox words{.seed = 5, .stream = 11};
  uint64_t index = 0;
  const auto product = [](const Point& a, const Point& b) {
    double sum = 0;
    for (size_t k = 0; k < d; ++k) sum += a[k] * b[k];
    return sum;
  };
  const auto draw = [&] {
    Point out;
    for (double& x : out) x = words.normal(index++);
    const double length = std::sqrt(product(out, out));
    for (double& x : out) x /= length;
    return out;
  };
  double sums[4] = {}, squares[4] = {};
  for (int64_t i = 0; i < draws; ++i) {
    std::array<Point, n> points;
    for (Point& p : points) p = draw();
    const Point y = draw(), z = draw();
    const auto nearest = [&](const Point& to) -> const Point& {
      return *std::max_element(points.begin(), points.end(), [&](const Point& a, const Point& b) {
        return product(a, to) < product(b, to);
      });
    };
    const double alike = product(nearest(y), nearest(z));
    Gegenbauer p(d, product(y, z));
    for (int64_t l = 0; l < 4; ++l, p.next()) {
      const double value = std::exp(log_harmonic_count(d, l)) * p.value() * alike;
      sums[l] += value;
      squares[l] += value * value;
    }
  }
  const ChoiceEnergies e = independent_energies(d, n);
  for (size_t l = 0; l < 4; ++l) {
    const double mean = sums[l] / draws;
    const double stderr_ = std::sqrt((squares[l] / draws - mean * mean) / draws);
    EXPECT_NEAR(e.energy[l], mean, 4 * stderr_) << l;
  }
  // Orthonormal points would be seen, and so would another number of points.
  const double off = std::abs(choice_energies(d, n).energy[0] - sums[0] / draws);
  EXPECT_GT(off, 8 * std::sqrt(squares[0] / draws / draws));
  EXPECT_GT(std::abs(independent_energies(d, 5).energy[0] - sums[0] / draws), off);
}

}  // namespace
}  // namespace rankscope
