#include "train/precision.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/train_support.h"

namespace rankscope {
namespace {

TEST(Precision, RoundingIsLostInNoiseBelowATenthOfIt) {
  const std::vector<float> exact{1, 2, 3}, other{1, 2, 4};
  EXPECT_TRUE(lost_in_noise(exact, std::vector<float>{1.05f, 2, 3.05f}, other));
  EXPECT_FALSE(lost_in_noise(exact, std::vector<float>{1.1f, 2, 3.1f}, other));
  EXPECT_TRUE(lost_in_noise(exact, exact, other));
  EXPECT_FALSE(lost_in_noise(exact, std::vector<float>{1, NAN, 3}, other));
}

TEST(Precision, OffCudaThereIsNothingToChoose) { EXPECT_FALSE(tf32_is_enough(small_encoder(), "cpu")); }

TEST(Precision, TheStudysEncodersGradientsTakeTf32) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  EXPECT_TRUE(tf32_is_enough(small_encoder(), "cuda"));
}

}  // namespace
}  // namespace rankscope
