#include "theory/choice_energies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/philox.h"
#include "theory/harmonics.h"
#include "theory/quadrature.h"

namespace rankscope {
namespace {

TEST(ChoiceEnergies, OfTwoPointsAreHalfTheEnergiesOfTheSign) {
  for (const int64_t d : {2, 3, 4, 16, 64, 4096}) {
    const ChoiceEnergies e = choice_energies(d, 2);
    ASSERT_GE(e.energy.size(), 16u) << d;
    for (size_t l = 1; l < e.energy.size(); ++l) {
      // The error carried along must hold the truth; the closed form is itself good to 1e-12 of its value.
      const double truth = sign_energy(d, static_cast<int64_t>(l)) / 2;
      EXPECT_NEAR(e.energy[l], truth, e.error[l] + 1e-12) << d << " " << l;
    }
  }
}

TEST(ChoiceEnergies, OfDegreesZeroAndOneAreThoseOfTheMeanLargestOfNormals) {
  // e_N, the mean of the largest of N standard normals: closed forms up to 5 (Gupta 1961 for 4 and 5).
  const double root = std::sqrt(std::numbers::pi), asin3 = std::asin(1.0 / 3) / std::numbers::pi;
  const double largest[] = {1 / root, 1.5 / root, 3 / root * (0.5 + asin3), 5 / root * (0.25 + 1.5 * asin3)};
  for (const int64_t d : {5, 16, 64})
    for (int64_t n = 2; n <= 5; ++n) {
      const ChoiceEnergies e = choice_energies(d, n);
      const auto dim = static_cast<double>(d), points = static_cast<double>(n);
      const double length = std::sqrt(2.0) * std::exp(log_gamma((dim + 1) / 2) - log_gamma(dim / 2));
      const double m = largest[n - 2] / length;
      EXPECT_NEAR(e.energy[0], 1 / points, 1e-13) << d << " " << n;
      EXPECT_NEAR(e.energy[1], dim * m * m / (points - 1), 1e-12) << d << " " << n;
    }
}

// The largest of many normals lies in a narrow range, which the quadrature must not step over.
TEST(ChoiceEnergies, OfManyPointsAreRightToTheErrorTheyState) {
  for (const auto& [d, n] :
       std::vector<std::pair<int64_t, int64_t>>{{64, 64}, {256, 200}, {1024, 1000}, {65536, 60000}}) {
    const auto dim = static_cast<double>(d), points = static_cast<double>(n);
    const double mean = integrate(-8, 12, 400, [points](double x) {
      const double log_below = x > 0 ? std::log1p(-normal_cdf(-x)) : std::log(normal_cdf(x));
      return x * points * std::exp(-x * x / 2 + (points - 1) * log_below) / std::sqrt(2 * std::numbers::pi);
    });
    // E|g|, whose square over d is 1 - 1/(2d) + ...: the series is good to d^-4.
    const double length2 = dim - 0.5 + 0.125 / dim + 0.0625 / (dim * dim);
    const ChoiceEnergies e = choice_energies(d, n);
    EXPECT_NEAR(e.energy[0], 1 / points, e.error[0]) << d << " " << n;
    EXPECT_NEAR(e.energy[1], dim * mean * mean / length2 / (points - 1),
                e.error[1] + 1e-13 / points + std::pow(dim, -4))
        << d << " " << n;
    for (const double error : e.error) EXPECT_LT(error, n == 64 ? 1e-6 : 1e-9) << d << " " << n;
  }
}

TEST(ChoiceEnergies, AreEnergies) {
  for (const auto& [d, n] : std::vector<std::pair<int64_t, int64_t>>{
           {3, 3}, {16, 4}, {16, 16}, {32, 32}, {64, 16}, {4096, 1000}, {65536, 65536}}) {
    const ChoiceEnergies e = choice_energies(d, n);
    ASSERT_GE(e.energy.size(), 17u) << d << " " << n;
    double sum = 0;
    for (size_t l = 0; l < e.energy.size(); ++l) {
      EXPECT_GE(e.energy[l], -e.error[l]) << d << " " << n << " " << l;
      EXPECT_LE(e.error[l], 1e-6);
      sum += e.energy[l];
    }
    EXPECT_LT(sum, 1) << d << " " << n;
    EXPECT_GT(sum, 0.6) << d << " " << n;
  }
}

// Choices counted as they are made: y and y' uniform, the points the first n coordinates.
TEST(ChoiceEnergies, AreWhatCountingChoicesGives) {
  constexpr int64_t d = 8, n = 4, draws = 100'000;
  const Philox words{.seed = 5, .stream = 7};
  double sums[4] = {}, squares[4] = {};
  uint64_t index = 0;
  std::vector<double> y(d), z(d);
  for (int64_t i = 0; i < draws; ++i) {
    double yy = 0, zz = 0, yz = 0;
    for (size_t k = 0; k < d; ++k) {
      y[k] = words.normal(index++);
      z[k] = words.normal(index++);
      yy += y[k] * y[k];
      zz += z[k] * z[k];
      yz += y[k] * z[k];
    }
    const auto choice = [](const std::vector<double>& v) {
      return std::max_element(v.begin(), v.begin() + n) - v.begin();
    };
    if (choice(y) != choice(z)) continue;
    Gegenbauer p(d, yz / std::sqrt(yy * zz));
    for (int64_t l = 0; l < 4; ++l, p.next()) {
      const double value = std::exp(log_harmonic_count(d, l)) * p.value();
      sums[l] += value;
      squares[l] += value * value;
    }
  }
  const ChoiceEnergies e = choice_energies(d, n);
  for (size_t l = 0; l < 4; ++l) {
    const double mean = sums[l] / draws;
    const double stderr_ = std::sqrt((squares[l] / draws - mean * mean) / draws);
    EXPECT_NEAR(e.energy[l], mean, 4 * stderr_) << l;
    // A wrong number of points would be seen.
    if (l == 1) {
      EXPECT_GT(std::abs(choice_energies(d, 3).energy[l] - mean), 2 * stderr_);
    }
  }
}

}  // namespace
}  // namespace rankscope
