#include <gtest/gtest.h>

#include "lenses/support/on_device.h"
#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope::testing {
namespace {

TEST(Massive, RatioIsTheLargestOverTheMedian) {
  at::manual_seed(1);
  for (const auto& [T, d] : {std::pair{1, 1}, {1, 8}, {5, 7}, {64, 33}})
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor x = at::randn({T, d}).to(type);
      EXPECT_NEAR(see_residual("massive", x).of("massive_ratio"), reference::massive_ratio(x), 1e-12);
    }
}

TEST(Massive, TheTokenAndChannelAreThoseOfTheSampleWithTheLargestRatio) {
  at::manual_seed(2);
  at::Tensor x = at::randn({30, 12});
  x[4][3] = 60;           // sample 0
  x[10 + 7][11] = -5000;  // sample 1: position 7
  x[25][2] = 90;          // sample 2
  const Collected got = see_residual("massive", x, Packed({10, 12, 8}));
  EXPECT_EQ(got.total("massive_token").value, 7);
  EXPECT_EQ(got.total("massive_channel").value, 11);
  EXPECT_EQ(got.total("massive_token").n, 1);
  EXPECT_GT(got.of("massive_ratio", 1), got.of("massive_ratio", 2));
  EXPECT_GT(got.of("massive_ratio", 2), got.of("massive_ratio", 0));
}

TEST(Massive, OfOneSizeIsOne) {
  EXPECT_EQ(see_residual("massive", at::full({3, 4}, -2.0f)).of("massive_ratio"), 1);
}

// Padding: channels of zeros are no measure of what is typical, and hide nothing.
TEST(Massive, IsHeldAgainstTheMedianOfWhatIsNotZero) {
  at::Tensor x = at::zeros({5, 9});
  x.narrow(1, 0, 4).fill_(2);
  x[3][1] = -500;
  EXPECT_EQ(see_residual("massive", x).of("massive_ratio"), 250);
  {
    const AsOnDevice as_on_device;
    const Collected got = see_residual("massive", at::cat({x, at::zeros({2, 9}), x}), Packed({5, 2, 5}));
    for (const int64_t sample : {0, 2}) EXPECT_EQ(got.of("massive_ratio", sample), 250);
    EXPECT_EQ(got.total("massive_token").value, 3);
  }
  EXPECT_EQ(see_residual("massive", at::eye(5)).of("massive_ratio"), 1);
}

TEST(Massive, OfZerosAloneIsNotDefined) {
  const Collected got = see_residual("massive", at::zeros({3, 4}));
  EXPECT_TRUE(got.samples.empty());
  EXPECT_TRUE(got.values.empty());
}

}  // namespace
}  // namespace rankscope::testing
