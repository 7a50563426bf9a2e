#include "theory/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/philox.h"

namespace rankscope {
namespace {

using Vectors = std::vector<std::vector<double>>;

// Points as the definition draws them, independent and uniform on the sphere.
class Points {
 public:
  Points(size_t d, size_t n, uint64_t seed) : x_(n, std::vector<double>(d)), words_{.seed = seed} {}
  const Vectors& draw() {
    for (auto& v : x_) {
      double norm = 0;
      for (double& c : v) {
        c = words_.normal(index_++);
        norm += c * c;
      }
      for (double& c : v) c /= std::sqrt(norm);
    }
    return x_;
  }

 private:
  Vectors x_;
  Philox words_;
  uint64_t index_ = 0;
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

size_t farthest_from(const Vectors& x, size_t i) {
  size_t best = i;
  for (size_t j = 0; j < x.size(); ++j)
    if (dot(x[j], x[i]) < dot(x[best], x[i])) best = j;
  return best;
}

TEST(NoSelection, OfTwoOrthonormalPointsIsAHalf) { EXPECT_EQ(nearest_floor(2), 0.5); }

TEST(NoSelection, FloorsAreThoseOfTheSheet) {
  struct Row {
    int64_t n;
    double mean, floor;
  };
  // The sheet's floors are Monte Carlo: a unit of the last digit, not half of it.
  for (const Row& row : {Row{4, .802, .659}, {16, .965, .892}, {64, .994, .903}, {256, .999, .877}}) {
    const FarthestFloors floors = farthest_floors(64, row.n);
    EXPECT_NEAR(floors.mean_of_tokens, row.mean, 0.5e-3) << row.n;
    EXPECT_NEAR(floors.no_selection, row.floor, 1e-3) << row.n;
  }
}

TEST(NoSelection, FloorsAreWhatLeastSquaresFindsOnRealPoints) {
  for (const auto& [d, n] : {std::pair<int64_t, int64_t>{3, 3}, {2, 5}, {8, 6}}) {
    Points points(static_cast<size_t>(d), static_cast<size_t>(n), 7);
    constexpr int kSamples = 40'000;
    std::vector<double> self, sum;
    for (int s = 0; s < kSamples; ++s) {
      const Vectors& x = points.draw();
      const std::vector<double>& far = x[farthest_from(x, 0)];
      self.push_back(dot(far, x[0]));
      sum.push_back(0);
      for (const auto& other : x) sum.back() += dot(far, other);
    }
    const Estimate p = arithmetic_mean(self), q = arithmetic_mean(sum);
    const double with_self = p.value, with_sum = q.value;
    const auto tokens = static_cast<double>(n);
    const double caught =
        (tokens * with_self * with_self - 2 * with_self * with_sum + with_sum * with_sum) / (tokens - 1);
    const double spread =
        2 *
        (std::abs(tokens * with_self - with_sum) * p.stderr_ + std::abs(with_sum - with_self) * q.stderr_) /
        (tokens - 1);
    EXPECT_NEAR(farthest_floors(d, n).no_selection, 1 - caught, 4 * spread) << d << " " << n;
    EXPECT_NEAR(farthest_floors(d, n).mean_of_tokens, 1 - with_sum * with_sum / tokens,
                4 * 2 * std::abs(with_sum) * q.stderr_ / tokens)
        << d << " " << n;
  }
}

TEST(NoSelection, OfTwoPointsInSelfAttentionCostsNothing) {
  EXPECT_NEAR(farthest_floors(64, 2).no_selection, 0, 1e-12);  // the other one is the sum less oneself
}

TEST(OneHardHead, HasAnErrorOfThreeQuarters) {
  EXPECT_NEAR(one_hard_head_error(64), 0.75, 0.5e-2);
  EXPECT_LT(one_hard_head_error(64), 0.75);
}

TEST(Temperature, ErrorOfTwoPointsIsThatOfTheSheet) {
  // The sheet's "checked" values are Monte Carlo with an error near one per cent.
  EXPECT_NEAR(soft_nearest_error(64, 100), 0.0170, 0.015 * 0.0170);
  EXPECT_NEAR(soft_nearest_error(64, 300), 0.00573, 0.015 * 0.00573);
  EXPECT_NEAR(soft_nearest_error(64, 1000), 0.00174, 0.015 * 0.00174);
}

TEST(Temperature, CoefficientTendsToItsClosedForm) {
  const double closed = 4 * (std::numbers::ln2 - 0.5) / std::sqrt(4 * std::numbers::pi);
  EXPECT_NEAR(closed, 0.2179, 0.5e-4);
  EXPECT_NEAR(nearest_temperature_coefficient(1'000'000, 2) / 1000, closed, 1e-6);
  EXPECT_NEAR(closed * 8 / 100, 0.0174, 0.5e-4);
  EXPECT_NEAR(closed * 8 / 300, 0.00581, 0.5e-5);
  EXPECT_NEAR(closed * 8 / 1000, 0.00174, 0.5e-5);
}

TEST(Temperature, ErrorTimesBetaTendsToTheCoefficient) {
  for (const int64_t d : {2, 3, 64, 1024}) {
    const double coefficient = nearest_temperature_coefficient(d, 2);
    EXPECT_NEAR(soft_nearest_error(d, 1e6) * 1e6, coefficient, 1e-6 * coefficient) << d;
  }
}

TEST(Temperature, WithoutAnyItIsTheMean) { EXPECT_NEAR(soft_nearest_error(16, 1e-9), 0.5, 1e-8); }

TEST(Temperature, FarthestErrorsAreThoseOfTheSheet) {
  struct Row {
    double beta, error;
  };
  // Sheet and this are both Monte Carlo: three standard errors of ours, twice, and its half unit.
  for (const Row& row : {Row{100, .053}, {300, .018}, {1000, .0052}}) {
    const Estimate e = soft_farthest_error(64, 16, row.beta, 40'000, 11);
    EXPECT_NEAR(e.value, row.error, 6 * e.stderr_ + 0.5e-3) << row.beta;
  }
  struct Coefficient {
    int64_t n;
    double value;
  };
  // "About", says the sheet.
  for (const Coefficient& c : {Coefficient{4, 2.4}, {16, 5.3}, {64, 7.3}, {256, 9}})
    EXPECT_NEAR(farthest_temperature_coefficient(64, c.n), c.value, 0.1 * c.value) << c.n;
}

TEST(Temperature, FarthestCoefficientIsTheLimitOfTheSampledError) {
  const Estimate e = soft_farthest_error(16, 8, 1000, 60'000, 5);
  EXPECT_NEAR(e.value * 1000, farthest_temperature_coefficient(16, 8), 4 * e.stderr_ * 1000);
}

TEST(Temperature, FarthestErrorIsThatOfRealPoints) {
  constexpr double kBeta = 10;
  Points points(8, 5, 3);
  std::vector<double> errors;
  for (int s = 0; s < 20'000; ++s) {
    const Vectors& x = points.draw();
    std::vector<double> off = x[farthest_from(x, 0)];
    double total = 0;
    for (const auto& v : x) total += std::exp(-kBeta * dot(v, x[0]));
    for (const auto& v : x)
      for (size_t c = 0; c < off.size(); ++c) off[c] -= std::exp(-kBeta * dot(v, x[0])) / total * v[c];
    errors.push_back(dot(off, off));
  }
  const Estimate plain = arithmetic_mean(errors), ours = soft_farthest_error(8, 5, kBeta, 20'000, 4);
  EXPECT_NEAR(plain.value, ours.value, 4 * std::hypot(plain.stderr_, ours.stderr_));
  EXPECT_LT(ours.stderr_, plain.stderr_);
}

}  // namespace
}  // namespace rankscope
