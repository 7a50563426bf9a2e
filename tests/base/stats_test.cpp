// Means over samples.
#include "base/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rankscope {
namespace {

TEST(GeometricMean, IsTheExponentialOfTheMeanLogarithm) {
  const Estimate e = geometric_mean(std::vector<double>{0.5, 2, 8});
  EXPECT_NEAR(e.value, 2, 1e-15);
  EXPECT_NEAR(e.stderr_, 2 * std::log(4.0) / std::sqrt(3.0), 1e-14);
}

// A sample whose tokens are all one has a residual of exactly 0, and does not make that of all 0.
TEST(GeometricMean, TakesAZeroAmongOtherNumbersForWhatRoundingLeavesOfThem) {
  EXPECT_NEAR(geometric_mean(std::vector<double>{0, 1, 1, 1}).value, std::exp2(-5), 1e-16);  // 2^(-20 / 4)
  EXPECT_NEAR(geometric_mean(std::vector<double>{0, 5e3, 5e3, 5e3}).value, 5e3 * std::exp2(-5), 1e-11);
}

TEST(GeometricMean, TakesWhatRoundingLeavesOfAZeroForTheSame) {
  const double zero = geometric_mean(std::vector<double>{0, 0.9, 0.8, 0.9}).value;
  for (const double rounding : {1e-16, 1e-9})
    EXPECT_NEAR(geometric_mean(std::vector<double>{rounding, 0.9, 0.8, 0.9}).value, zero, 1e-16);
  EXPECT_NEAR(geometric_mean(std::vector<double>{0, 0, 1, 1}).value, std::exp2(-10), 1e-17);
  // Numbers that differ by less than that are what they are.
  EXPECT_NEAR(geometric_mean(std::vector<double>{1e-5, 0.1, 0.1}).value, std::cbrt(1e-7), 1e-16);
}

TEST(FiniteLogs, TakeLogarithmsBelowWhatADoubleHoldsAsTheyAre) {
  EXPECT_EQ(finite_logs({-INFINITY, -1e6, 0}), (std::vector<double>{-1e6, -1e6, 0}));
  EXPECT_EQ(finite_logs({-INFINITY}), std::vector<double>{-INFINITY});
}

TEST(GeometricMean, OfZerosAloneIsZero) {
  EXPECT_EQ(geometric_mean(std::vector<double>{0, 0}).value, 0);
  EXPECT_TRUE(std::isnan(geometric_mean(std::vector<double>{}).value));
}

}  // namespace
}  // namespace rankscope
