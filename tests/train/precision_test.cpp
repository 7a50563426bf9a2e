#include "train/precision.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

TEST(Precision, RoundingIsLostInNoiseBelowATenthOfIt) {
  const std::vector<float> exact{1, 2, 3}, other{1, 2, 4};
  const auto lost = [&](std::vector<float> rounded) {
    return lost_in_noise(rounding_in_noise(exact, rounded, other));
  };
  EXPECT_TRUE(lost({1.05f, 2, 3.05f}));
  EXPECT_FALSE(lost({1.1f, 2, 3.1f}));
  EXPECT_TRUE(lost(exact));
  EXPECT_FALSE(lost({1, NAN, 3}));
}

TEST(Precision, RoundingIsMeasuredInStepsToAnotherBatch) {
  const std::vector<float> exact{1, 2, 3};
  EXPECT_EQ(rounding_in_noise(exact, std::vector<float>{1, 2.5f, 3}, std::vector<float>{1, 2, 5}), 0.25);
}

TEST(Precision, OffCudaThereIsNothingToChoose) {
  for (const char* asked : {"auto", "fp32", "tf32"}) {
    const Precision p = precision_for(asked, small_encoder(), "cpu");
    EXPECT_FALSE(p.tf32) << asked;
    EXPECT_TRUE(std::isnan(p.rounding)) << asked;
  }
  EXPECT_THROW(precision_for("fp16", small_encoder(), "cpu"), Error);
}

TEST(Precision, TheStudysEncodersGradientsTakeTf32) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  const Precision measured = precision_for("auto", small_encoder(), "cuda");
  EXPECT_TRUE(measured.tf32);
  EXPECT_GT(measured.rounding, 0);
  EXPECT_TRUE(std::isnan(precision_for("tf32", small_encoder(), "cuda").rounding));
  EXPECT_FALSE(precision_for("fp32", small_encoder(), "cuda").tf32);
}

}  // namespace
}  // namespace rankscope
