#include "spectral/spectrum.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope {
namespace {

Spectrum of(std::vector<double> sigma, int64_t rows = 0, int64_t cols = 0, double epsilon = 0x1p-23) {
  Spectrum s;
  s.rows = rows > 0 ? rows : static_cast<int64_t>(sigma.size());
  s.cols = cols > 0 ? cols : s.rows;
  s.sigma = std::move(sigma);
  s.epsilon = epsilon;
  return s;
}

TEST(Spectrum, OfTheIdentityHasEveryRankEqualToTheDimension) {
  const Spectrum s = of({1, 1, 1, 1, 1});
  EXPECT_NEAR(effective_rank(s), 5, 1e-14 * 5);
  EXPECT_NEAR(effective_rank_rel(s), 1, 1e-14);
  EXPECT_EQ(stable_rank(s), 5);
  EXPECT_EQ(stable_rank_gram(s), 5);
  EXPECT_EQ(numerical_rank(s).rank, 5);
  EXPECT_EQ(spectral_gap(s), 0);
}

TEST(Spectrum, OfRankOneHasEveryRankOne) {
  const Spectrum s = of({7, 0, 0});
  EXPECT_EQ(effective_rank(s), 1);
  EXPECT_EQ(stable_rank(s), 1);
  EXPECT_EQ(stable_rank_gram(s), 1);
  EXPECT_EQ(numerical_rank(s).rank, 1);
  EXPECT_EQ(spectral_gap(s), 7);
}

TEST(Spectrum, OfTwoAndOneIsWorkedOutByHand) {
  const Spectrum s = of({2, 1});
  // p = 2/3, 1/3: entropy = log 3 - (2/3) log 2.
  EXPECT_NEAR(effective_rank(s), 3 / std::pow(2.0, 2.0 / 3.0), 1e-14);
  EXPECT_EQ(stable_rank(s), 1.25);
  EXPECT_EQ(stable_rank_gram(s), 1 + 1.0 / 16);
  EXPECT_NEAR(frobenius(s), std::sqrt(5.0), 1e-15);
  EXPECT_EQ(spectral_gap(s), 1);
}

TEST(Spectrum, OfZeroIsZeroEverywhereAndNeverNan) {
  const Spectrum s = of({0, 0, 0});
  EXPECT_EQ(effective_rank(s), 0);
  EXPECT_EQ(effective_rank_rel(s), 0);
  EXPECT_EQ(stable_rank(s), 0);
  EXPECT_EQ(stable_rank_gram(s), 0);
  EXPECT_EQ(numerical_rank(s).rank, 0);
  EXPECT_EQ(numerical_rank(s).tolerance, 0);
  EXPECT_EQ(spectral_gap(s), 0);
  EXPECT_EQ(frobenius(s), 0);
}

TEST(Spectrum, OfNothingIsZero) {
  const Spectrum s;
  EXPECT_EQ(effective_rank(s), 0);
  EXPECT_EQ(effective_rank_rel(s), 0);
  EXPECT_EQ(stable_rank(s), 0);
  EXPECT_EQ(numerical_rank(s).rank, 0);
}

TEST(Spectrum, OfNanIsNanEverywhere) {
  const Spectrum s = of({std::nan(""), std::nan("")});
  EXPECT_TRUE(std::isnan(effective_rank(s)));
  EXPECT_TRUE(std::isnan(stable_rank(s)));
  EXPECT_TRUE(std::isnan(numerical_rank(s).rank));
}

TEST(Spectrum, ScaleChangesNoRankEvenWhereSquaresOverflow) {
  const Spectrum small = of({3, 2, 1e-3});
  for (const double scale : {1e-200, 1e200}) {
    const Spectrum s = of({3 * scale, 2 * scale, 1e-3 * scale});
    EXPECT_NEAR(effective_rank(s), effective_rank(small), 1e-14);
    EXPECT_NEAR(stable_rank(s), stable_rank(small), 1e-14);
    EXPECT_NEAR(stable_rank_gram(s), stable_rank_gram(small), 1e-14);
    EXPECT_EQ(numerical_rank(s).rank, 3);
  }
}

TEST(Spectrum, RanksAreOrderedAsTheoryOrdersThem) {
  const Spectrum s = of({5, 4, 2, 1, 0.5, 0.1});
  EXPECT_LE(stable_rank_gram(s), stable_rank(s));
  EXPECT_LE(stable_rank(s), effective_rank(s));
  EXPECT_LE(effective_rank(s), numerical_rank(s).rank);
}

TEST(Spectrum, NumericalRankPrintsTheToleranceItUsed) {
  const NumericalRank r = numerical_rank(of({1.0, 1e-4, 1e-6}, 3, 100));
  EXPECT_DOUBLE_EQ(r.tolerance, 100 * 0x1p-23);  // 1.2e-5
  EXPECT_EQ(r.rank, 2);
  EXPECT_EQ(numerical_rank(of({1.0, 1e-4, 1e-6}, 3, 100, 0x1p-52)).rank, 3);
}

}  // namespace
}  // namespace rankscope
