#include "theory/choice_bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "theory/harmonics.h"
#include "theory/lower_bound.h"

namespace rankscope {
namespace {

TEST(ChoiceBound, OfTwoPointsIsTheirBoundButForTheDegreesAboveThoseHeld) {
  for (const int64_t d : {3, 8, 16, 64})
    for (const int64_t r : {int64_t{1}, d / 2, d - 1})
      for (const double heads : {1.0, 16.0, 1e3}) {
        const ChoiceBound many(d, r, choice_energies(d, 2));
        const double whole = lower_bound(d, r, heads), ours = many.at(heads);
        // Below it, by no more than all the energy above the last degree times the share counted for it.
        const auto last = static_cast<int64_t>(many.energies().energy.size());
        const auto l = static_cast<double>(last), rank = static_cast<double>(r);
        const double share = heads * std::exp(log_gamma(l + rank) - log_gamma(l + 1) - log_gamma(rank) -
                                              log_harmonic_count(d, last));
        const double loss = sign_tail(d, last - 1) / 2 * std::min(1.0, share);
        EXPECT_LE(ours, whole + 1e-10) << d << " " << r << " " << heads;
        EXPECT_GE(ours, whole - loss - many.error_bar(heads) - 1e-10) << d << " " << r << " " << heads;
      }
}

TEST(ChoiceBound, OfFourPointsInSixteenDimensionsIsWhatSamplingFound) {
  // Monte Carlo of an earlier program, three digits; its last one stopped the series early.
  struct Row {
    int64_t r;
    double sampled, off;
  };
  for (const Row& row : {Row{1, .371, .0005}, {2, .363, .0005}, {4, .346, .0005}, {8, .297, .005}}) {
    const ChoiceBound bound(16, row.r, choice_energies(16, 4));
    const double heads = 16.0 / static_cast<double>(row.r);
    EXPECT_NEAR(bound.at(heads), row.sampled, row.off) << row.r;
    EXPECT_LT(bound.error_bar(heads), 1e-9);
  }
}

TEST(ChoiceBound, FallsWithHeadsAndWithRankAndEndsAtFullRank) {
  for (const int64_t r : {1, 4, 14}) {
    const ChoiceBound bound(16, r, choice_energies(16, 8)), better(16, r + 1, choice_energies(16, 8));
    double before = 1;
    for (double heads = 1; heads < 1e60; heads *= 7) {
      const double now = bound.at(heads);
      EXPECT_LE(now, before) << r << " " << heads;
      EXPECT_GE(now, better.at(heads)) << r << " " << heads;
      EXPECT_GE(now, 0);
      before = now;
    }
  }
  EXPECT_EQ(ChoiceBound(16, 16, choice_energies(16, 8)).at(1), 0);
  EXPECT_EQ(ChoiceBound(16, 16, choice_energies(16, 8)).error_bar(1), 0);
}

TEST(ChoiceBound, WithAsManyRankOneHeadsAsDimensionsIsJustBelowThePlateau) {
  // H = d covers degrees 0 and 1 exactly and d / N(d, 2) = 2 / (d + 1) - ... of degree 2.
  const ChoiceBound bound(16, 1, choice_energies(16, 4));
  EXPECT_LT(bound.at(16), bound.plateau());
  EXPECT_GT(bound.at(16), bound.plateau() - bound.energies().energy[2] * 16 / 135 - 0.01);
}

TEST(ChoiceBound, HeadsNeededAndBoundAreInverse) {
  for (const int64_t r : {1, 8, 15}) {
    const ChoiceBound bound(16, r, choice_energies(16, 4));
    for (const double error : {0.35, 0.2, 0.1, 0.01}) {
      const double needed = bound.log10_heads_for(error);
      if (needed > 0) {
        EXPECT_NEAR(bound.at_log(needed * std::log(10.0)), error, 1e-9) << r << " " << error;
      }
    }
  }
}

}  // namespace
}  // namespace rankscope
