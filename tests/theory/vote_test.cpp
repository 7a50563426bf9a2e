#include "theory/vote.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "base/philox.h"
#include "theory/quadrature.h"

namespace rankscope {
namespace {

using std::numbers::pi;

TEST(Vote, ErrorsAreThoseOfTheSheet) {
  // With ties tossed, which the sheet's values are. The last is Monte Carlo there and 0.1220 exactly.
  EXPECT_NEAR(vote_error(64, 256, Tie::coin), 0.42, 0.5e-2);
  EXPECT_NEAR(vote_error(64, 1024, Tie::coin), 0.236, 0.5e-3);
  EXPECT_NEAR(vote_error(64, 4096, Tie::coin), 0.122, 5e-4);
  EXPECT_EQ(vote_asymptote(64, 256), 0.5);
  EXPECT_EQ(vote_asymptote(64, 1024), 0.25);
  EXPECT_EQ(vote_asymptote(64, 4096), 0.125);
}

TEST(Vote, ATossedTieIsOneHeadLess) {
  for (const double heads : {2, 16, 256}) {
    EXPECT_NEAR(vote_error(16, heads, Tie::coin), vote_error(16, heads - 1), 1e-10) << heads;
    EXPECT_LT(vote_error(16, heads), vote_error(16, heads, Tie::coin));
  }
}

TEST(Vote, OneHeadIsWrongByTheMeanAngle) {
  const double mean = mean_over_latitude(64, 1.0, [](double phi) { return 1 - 2 * phi / pi; });
  EXPECT_NEAR(vote_error(64, 1), mean, 1e-12);
}

TEST(Vote, ErrorIsTheSumOverBinomialCounts) {
  for (const int heads : {3, 4, 7}) {
    const double plain = mean_over_latitude(6, 0.5, [&](double phi) {
      const double right = 0.5 + phi / pi;
      double sum = 0, ways = 1;
      for (int k = 0; 2 * k <= heads; ++k) {
        const double p = ways * std::pow(right, k) * std::pow(1 - right, heads - k);
        sum += (2 * k == heads ? 0.5 : 2.0) * p;
        ways = ways * (heads - k) / (k + 1);
      }
      return sum;
    });
    EXPECT_NEAR(vote_error(6, heads), plain, 1e-11) << heads;
  }
}

TEST(Vote, ErrorMeetsItsAsymptoteAndTheNormalLaw) {
  for (const int64_t d : {2, 64, 1024})  // sqrt(d) is what the density at the equator grows to
    EXPECT_NEAR(vote_error(d, 1e12) * 1e6, std::sqrt(2 * pi) * density_at_equator(d), 1e-5) << d;
  EXPECT_NEAR(vote_error(65536, 1e12) / vote_asymptote(65536, 1e12), 1, 1e-4);
  EXPECT_NEAR(vote_error(64, (1 << 20) - 1) / vote_error(64, (1 << 20) + 1), 1, 1e-5);
  EXPECT_GT(vote_error(64, 1e60), 0);
}

TEST(Vote, ErrorKeepsItsAsymptoteToTheLargestHeadCounts) {
  // From here on the sphere is flat over the angles that count, to d / H = 1e-15. What is left is a rounding
  // at each of the nodes: 80 for every doubling of the angle, 500 doublings at the most heads.
  constexpr double kRounding = 80 * 500 * std::numeric_limits<double>::epsilon();
  for (const int64_t d : {2, 64, 65536})
    for (const double heads : {1e20, 1e28, 1e30, 1e32, 1e40, 1e60, 1e150, 1e300}) {
      const double flat = std::sqrt(2 * pi) * density_at_equator(d) / std::sqrt(heads);
      EXPECT_NEAR(vote_error(d, heads) / flat, 1, kRounding) << d << " " << heads;
    }
}

TEST(Vote, AdvantageAmongManyIsThatOfTheSheet) {
  struct Row {
    int64_t d, n;
    double advantage;
  };
  // The sheet's are Monte Carlo, some three units of the last digit off.
  for (const Row& row : {Row{64, 2, .031},
                         {64, 4, .035},
                         {64, 8, .029},
                         {64, 16, .020},
                         {16, 2, .066},
                         {16, 4, .076},
                         {16, 8, .060},
                         {16, 16, .043}}) {
    const Estimate e = vote_advantage(row.d, row.n, 40'000, 3);
    EXPECT_NEAR(e.value, row.advantage, 3e-3) << row.d << " " << row.n;
    EXPECT_LT(e.stderr_, 5e-4);
  }
}

TEST(Vote, AdvantageOfTwoIsTheMeanAngle) {
  for (const int64_t d : {2, 16}) {
    const Estimate e = vote_advantage(d, 2, 100'000, 5);
    EXPECT_NEAR(e.value, mean_over_latitude(d, 1.0, [](double phi) { return phi / pi; }), 4 * e.stderr_) << d;
  }
}

TEST(Vote, AdvantageIsThatOfCountingHits) {
  constexpr size_t d = 16, n = 4;
  constexpr int kSamples = 400'000;
  const Philox words{.seed = 21};
  uint64_t index = 0;
  int hits = 0;
  for (int s = 0; s < kSamples; ++s) {
    double y[d], q[d], product = 0;
    for (double& v : y) v = words.normal(index++);
    for (size_t i = 0; i < d; ++i) q[i] = words.normal(index++), product += q[i] * y[i];
    for (double& v : q) v *= product;
    hits += std::max_element(q, q + n) - q == std::max_element(y, y + n) - y;
  }
  const double rate = static_cast<double>(hits) / kSamples;
  EXPECT_NEAR(rate - 0.25, vote_advantage(d, n, 100'000, 3).value,
              4 * std::sqrt(rate * (1 - rate) / kSamples));
}

}  // namespace
}  // namespace rankscope
