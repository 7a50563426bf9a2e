#include <gtest/gtest.h>

#include <cmath>

#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope::testing {
namespace {

/// Sums of m n numbers in double, then a square root: a few hundred roundings.
constexpr double kTolerance = 1e-12;

void expect_matches(const Collected& got, const at::Tensor& x, int64_t sample, const std::string& tokens) {
  const at::Tensor r = reference::centered(x);
  const double l1inf = reference::composite(r), fro = reference::frobenius(r);
  const auto near = [&](const std::string& metric, double expected) {
    EXPECT_NEAR(got.of(metric, sample, -1, tokens), expected, kTolerance * (expected + 1e-3)) << metric;
  };
  near("residual_l1inf", l1inf);
  near("residual_l1inf_rel", l1inf / reference::composite(x));
  near("residual_fro", fro);
  near("offset_fro",
       std::sqrt(static_cast<double>(x.size(0))) * reference::frobenius(reference::wide(x).mean(0)));
  near("residual_fro_rel", fro / reference::frobenius(x));
}

TEST(Residual, MatchesTheReferenceOnOddShapes) {
  at::manual_seed(1);
  for (const auto& [T, d] : {std::pair{2, 1}, {2, 30}, {30, 2}, {17, 17}, {40, 13}, {3, 100}})
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor x = (at::randn({T, d}) + 2.0 * at::randn({1, d})).to(type);
      expect_matches(see_residual("residual", x), x, 0, "all");
    }
}

TEST(Residual, OfTwoByTwoIsWorkedOutByHand) {
  // R = [[1, -2], [-1, 2]]: columns 2 and 4, rows 3 and 3. X = [[2, -1], [0, 3]]: columns 2 and 4, rows 3
  // and 3.
  const Collected got = see_residual("residual", at::tensor({2.0, -1.0, 0.0, 3.0}).reshape({2, 2}));
  EXPECT_NEAR(got.of("residual_l1inf"), std::sqrt(12.0), 1e-15 * 4);
  EXPECT_NEAR(got.of("residual_l1inf_rel"), 1, 1e-15);
  EXPECT_NEAR(got.of("residual_fro"), std::sqrt(10.0), 1e-15 * 4);
  EXPECT_NEAR(got.of("offset_fro"), 2, 1e-15 * 2);
  EXPECT_NEAR(got.of("residual_fro_rel"), std::sqrt(10.0 / 14.0), 1e-15);
}

TEST(Residual, OfTokensAllAlikeIsExactlyZero) {
  at::manual_seed(2);
  const Collected got = see_residual("residual", at::randn({1, 50}).repeat({37, 1}));
  EXPECT_EQ(got.of("residual_l1inf"), 0);
  EXPECT_EQ(got.of("residual_fro_rel"), 0);
  EXPECT_GT(got.of("offset_fro"), 0);
}

TEST(Residual, OfMeanZeroTokensIsOne) {
  at::manual_seed(3);
  const at::Tensor half = at::randn({10, 8});
  const Collected got = see_residual("residual", at::cat({half, -half}));
  EXPECT_NEAR(got.of("residual_fro_rel"), 1, 1e-15);
  EXPECT_LE(got.of("residual_fro_rel"), 1);
  EXPECT_NEAR(got.of("offset_fro"), 0, 1e-15);
}

TEST(Residual, ScaleMovesTheAbsoluteNumbersAndNotTheRelativeOnes) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({12, 9}) + 1.0;
  const Collected one = see_residual("residual", x), eight = see_residual("residual", x * 8.0);
  EXPECT_NEAR(eight.of("residual_l1inf"), 8 * one.of("residual_l1inf"), 1e-12 * eight.of("residual_l1inf"));
  EXPECT_NEAR(eight.of("residual_l1inf_rel"), one.of("residual_l1inf_rel"), 1e-14);
  EXPECT_NEAR(eight.of("residual_fro_rel"), one.of("residual_fro_rel"), 1e-14);
}

TEST(Residual, KeepsItsDigitsWhenTheOffsetIsAMillionTimesLarger) {
  at::manual_seed(5);
  const at::Tensor x =
      at::randn({20, 30}) + 1e6;  // the floats themselves keep about one digit of the difference
  expect_matches(see_residual("residual", x), x, 0, "all");
}

TEST(Residual, OfOneTokenIsNotDefined) {
  const Collected got = see_residual("residual", at::ones({1, 4}));
  EXPECT_TRUE(got.samples.empty());
}

TEST(Residual, OfZeroHasNoRelativeValue) {
  const Collected got = see_residual("residual", at::zeros({3, 4}));
  EXPECT_EQ(got.of("residual_fro"), 0);
  EXPECT_FALSE(got.has("residual_fro_rel"));
  EXPECT_FALSE(got.has("residual_l1inf_rel"));
}

TEST(Residual, OfSomethingNotFiniteIsNotReported) {
  at::Tensor x = at::ones({3, 4});
  x[1][1] = std::nan("");
  EXPECT_TRUE(see_residual("residual", x).samples.empty());
}

TEST(Residual, ACollapsedLayerWithOneMassiveTokenIsSeenThroughContent) {
  at::manual_seed(6);
  at::Tensor x = at::randn({1, 64}).repeat({32, 1}) + 1e-4 * at::randn({32, 64});
  x[5] *= 1000.0;
  const Collected got = see_residual("residual", x);
  EXPECT_GT(got.of("residual_fro_rel"), 0.9);
  EXPECT_LT(got.content("residual_fro_rel"), 1e-3);
  expect_matches(got, reference::content_rows(x, std::vector<uint8_t>(32, 1)), 0, "content");
}

TEST(Residual, SpecialTokensAreLeftOutOfContent) {
  at::manual_seed(7);
  const at::Tensor x = at::randn({6, 5});
  const std::vector<uint8_t> flags{0, 1, 1, 1, 1, 0};
  const Collected got = see_residual("residual", x, Packed({6}, flags));
  expect_matches(got, x, 0, "all");
  expect_matches(got, x.narrow(0, 1, 4), 0, "content");
}

TEST(Residual, WithFewerThanTwoContentTokensThereIsNoContentValue) {
  const at::Tensor x = at::eye(3);
  for (const std::vector<uint8_t>& flags : {std::vector<uint8_t>{0, 0, 0}, {0, 1, 0}}) {
    const Collected got = see_residual("residual", x, Packed({3}, flags));
    EXPECT_TRUE(got.has("residual_fro"));
    EXPECT_FALSE(got.has("residual_fro", 0, -1, "content"));
  }
}

TEST(Residual, WhereContentIsEverythingTheNumbersAreTheSame) {
  at::manual_seed(8);
  const Collected got = see_residual("residual", at::randn({9, 7}));
  for (const char* metric : {"residual_l1inf", "residual_fro", "offset_fro", "residual_fro_rel"})
    EXPECT_EQ(got.of(metric), got.content(metric));
}

TEST(Residual, OfPackedSamplesIsThatOfEachAlone) {
  at::manual_seed(9);
  const std::vector<int64_t> lengths{4, 1, 9, 2};
  const at::Tensor x = at::randn({16, 11});
  const Collected packed = see_residual("residual", x, Packed(lengths, {}, 5));
  int64_t first = 0, sample = 5;
  for (const int64_t length : lengths) {
    if (length > 1)
      expect_matches(packed, x.narrow(0, first, length), sample, "all");
    else
      EXPECT_FALSE(packed.has("residual_fro", sample));
    first += length, ++sample;
  }
}

}  // namespace
}  // namespace rankscope::testing
