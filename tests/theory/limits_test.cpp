#include "theory/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "base/philox.h"
#include "theory/harmonics.h"

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

// The law of a cosine is built from exponentials of log gamma (of d / 2) and of exponents to some 100, so it
// is rounded relative to these. Squares, powers and products gather a dozen such roundings.
double rounding(int64_t d) {
  return 16 * std::numeric_limits<double>::epsilon() * (100 + log_gamma(static_cast<double>(d) / 2));
}

const double kTieCost = std::numbers::ln2 - 0.5;

// Written down from a computation in 113 bits that shares nothing with ours: the trapezoid rule over
// log tan(angle / 2), the distribution function as a running sum, the normal equations as they stand.
struct KnownLimits {
  int64_t d, n;
  double mean_of_tokens, no_selection, coefficient;
};
const KnownLimits kKnown[] = {
    {2, 3, 0.8821045843545843, 0.3357442839250506, 0.15655920761211192},
    {2, 256, 0.9960996047161126, 0.00029995623835909574, 0.38623642080052295},
    {2, 20000, 0.9999500000123364, 4.934555290122907e-08, 0.3862943515889361},
    {2, 1000000, 0.9999990000000001, 1.9739189062697426e-11, 0.38629436111607807},
    {4, 100000, 0.9999900431284329, 0.0011775226388075182, 1.1582005768362933},
    {16, 1000000, 0.9999995346287218, 0.19952618070126113, 5.184217115734827},
    {64, 4, 0.8021167709266589, 0.6583131141543721, 2.5794078399735},
    {64, 16, 0.9650508926882742, 0.8913329885129584, 5.260395881687849},
    {64, 64, 0.9936052150766499, 0.9030033479383252, 7.0246142563598255},
    {64, 1000000, 0.9999999817937912, 0.6854469070749291, 13.649148656810013},
    {80, 16, 0.9622038738186701, 0.8996899593922947, 5.904641314342595},
    {81, 3, 0.7072083075864797, 0.49605825285209504, 1.9402278611923856},
    {81, 16, 0.9620534303666349, 0.9001032223341855, 5.942589950118881},
    {128, 256, 0.9980960078504355, 0.9354452283961459, 12.121830827538181},
    {256, 20000, 0.9999759173103889, 0.9384988983185437, 24.419867616637795},
    {1024, 4, 0.7631809766788802, 0.666146587957798, 10.452334731597759},
    {1024, 16, 0.9443623193838634, 0.9306929149439604, 21.432361916245295},
    {1024, 1000000, 0.9999993163319167, 0.9771391258832808, 59.74909509837478},
    {65536, 3, 0.668134294162163, 0.4999951429580624, 55.79272828375183},
    {65536, 16, 0.9383491215185183, 0.9332920615430466, 171.66358665107114},
    {65536, 1000000, 0.999999038307232, 0.9996382217106557, 480.8529516943477},
};

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
  for (const int64_t d : {2, 64, 65536}) {
    EXPECT_EQ(farthest_floors(d, 2).no_selection, 0) << d;  // the other one is the sum less oneself
    EXPECT_EQ(farthest_floors(d, 2).mean_of_tokens, 0.5) << d;
  }
}

TEST(NoSelection, FloorsAreRightInNarrowAndWideLayersAndForManyPoints) {
  for (const KnownLimits& known : kKnown) {
    const FarthestFloors floors = farthest_floors(known.d, known.n);
    EXPECT_NEAR(floors.mean_of_tokens / known.mean_of_tokens, 1, rounding(known.d))
        << known.d << " " << known.n;
    EXPECT_NEAR(floors.no_selection / known.no_selection, 1, rounding(known.d)) << known.d << " " << known.n;
  }
}

TEST(NoSelection, FloorsInThreeDimensionsAreClosedForms) {
  // A cosine is uniform there, 2 U - 1 with U the smallest of N - 1 uniforms: E U = 1/N,
  // E U^2 = 2 / (N (N + 1)), and the mean of a cosine above 2 U - 1 is U.
  for (const int64_t n : {3, 4, 16, 1000, 20'000, 100'000, 1'000'000}) {
    const auto tokens = static_cast<double>(n);
    const double gap = 2 / tokens, with_others = gap + 4 * (tokens - 2) / (tokens * (tokens + 1));
    const double floor = gap * (2 - gap) - with_others * with_others / (tokens - 1);
    const double with_sum = with_others - 1 + gap;
    EXPECT_NEAR(farthest_floors(3, n).no_selection / floor, 1, rounding(3)) << n;
    EXPECT_NEAR(farthest_floors(3, n).mean_of_tokens, 1 - with_sum * with_sum / tokens, rounding(3)) << n;
  }
}

TEST(NoSelection, OfAQueryAmongIndependentPointsHasClosedFormsAndTendsToThatOfOrthonormalOnes) {
  // Two points: half, as their sum is orthogonal to their difference in the mean. Three dimensions: the
  // largest cosine is 2 U - 1 with E U = N / (N + 1), E U^2 = N / (N + 2), and a cosine below it has the mean
  // U - 1.
  for (const int64_t d : {2, 3, 64, 4096}) EXPECT_NEAR(independent_floor(d, 2), 0.5, rounding(d)) << d;
  for (const int64_t n : {3, 4, 16, 1000}) {
    const auto points = static_cast<double>(n);
    const double product = 4 * points / (points + 2) - 6 * points / (points + 1) + 2;
    const double with_sum = 1 + (points - 1) / 2 * product;
    EXPECT_NEAR(independent_floor(3, n), 1 - with_sum * with_sum / points, points * rounding(3)) << n;
  }
  EXPECT_NEAR(independent_floor(65536, 8), nearest_floor(8), 1e-4);
  EXPECT_GT(std::abs(independent_floor(64, 8) - nearest_floor(8)), 1e-3);
}

TEST(NoSelection, OfManyPointsOnACircleCostsTheSquareOfTheirSpacing) {
  // The farthest is off the opposite point by an angle of mean square 2 pi^2 / (N (N + 1)), which is the
  // floor; what follows is smaller by the square of that angle, times at most ten.
  for (const int64_t n : {1000, 20'000, 100'000, 1'000'000}) {
    const auto tokens = static_cast<double>(n);
    const double square = 2 * std::numbers::pi * std::numbers::pi / (tokens * (tokens + 1));
    EXPECT_NEAR(farthest_floors(2, n).no_selection / square, 1, 10 * square + rounding(2)) << n;
  }
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

TEST(Temperature, FarthestCoefficientIsRightInNarrowAndWideLayersAndForManyPoints) {
  for (const KnownLimits& known : kKnown)
    EXPECT_NEAR(farthest_temperature_coefficient(known.d, known.n) / known.coefficient, 1, rounding(known.d))
        << known.d << " " << known.n;
}

TEST(Temperature, FarthestCoefficientInThreeDimensionsIsAClosedForm) {
  for (const int64_t n : {3, 4, 16, 1000, 20'000, 100'000, 1'000'000}) {
    const double closed = kTieCost * 4 * static_cast<double>(n - 2) / static_cast<double>(n);
    EXPECT_NEAR(farthest_temperature_coefficient(3, n) / closed, 1, rounding(3)) << n;
  }
}

TEST(Temperature, FarthestCoefficientOnACircleTendsToTwoTies) {
  // The sine of the angle is the angle but for a sixth of its cube: a mean factor 1 - pi^2 / (N (N + 1)).
  for (const int64_t n : {1000, 20'000, 100'000, 1'000'000}) {
    const double angle = std::numbers::pi / static_cast<double>(n);
    EXPECT_NEAR(farthest_temperature_coefficient(2, n) / (2 * kTieCost), 1, angle * angle + rounding(2)) << n;
  }
}

TEST(Temperature, CoefficientOfIndependentPointsTendsToThatOfOrthonormalOnes) {
  for (const int64_t n : {2, 8, 64}) {
    const double ratio =
        independent_temperature_coefficient(65536, n) / nearest_temperature_coefficient(65536, n);
    EXPECT_NEAR(ratio, 1, 5e-4) << n;
    EXPECT_EQ(independent_temperature_coefficient(64, n), farthest_temperature_coefficient(64, n + 1)) << n;
  }
}

TEST(Temperature, NearestCoefficientIsRightForManyPoints) {
  struct Row {
    int64_t d, n;
    double coefficient;
  };
  // From the trapezoid rule in 113 bits.
  for (const Row& row : {Row{64, 16, 5.393291668678608},
                         {1024, 256, 34.918441944265275},
                         {65536, 20000, 397.418972701435},
                         {65536, 65536, 424.3507423511263}})
    EXPECT_NEAR(nearest_temperature_coefficient(row.d, row.n) / row.coefficient, 1, rounding(row.d))
        << row.d << " " << row.n;
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
