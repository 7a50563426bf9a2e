#include <gtest/gtest.h>

#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope::testing {
namespace {

class AttentionEntropy : public ::testing::TestWithParam<MaskKind> {};

TEST_P(AttentionEntropy, MatchesTheReferenceWholeAndInTiles) {
  at::manual_seed(1);
  const MaskKind mask = GetParam();
  std::vector<at::Tensor> patterns;
  for (const int64_t T : {2, 3, 9, 20}) patterns.push_back(random_pattern(3, T, mask));
  for (const int64_t rows : {0, 1, 4}) {
    const Collected got = see_patterns("attention", patterns, mask, rows);
    for (size_t s = 0; s < patterns.size(); ++s)
      for (int h = 0; h < 3; ++h)
        EXPECT_NEAR(got.of("attention_entropy", static_cast<int64_t>(s), h),
                    reference::attention_entropy(patterns[s][h], mask.causal, mask.window), 1e-13);
  }
}

TEST_P(AttentionEntropy, OfUniformAttentionUnderTheMaskIsOne) {
  const MaskKind mask = GetParam();
  const at::Tensor u = reference::uniform(11, mask.causal, mask.window).unsqueeze(0);
  EXPECT_NEAR(see_patterns("attention", {u}, mask).of("attention_entropy", 0, 0), 1, 1e-14);
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionEntropy,
                         ::testing::Values(MaskKind{}, MaskKind{true, 0}, MaskKind{true, 4},
                                           MaskKind{false, 5}));

TEST(AttentionEntropy, OfOneKeyPerQueryIsZero) {
  EXPECT_EQ(see_patterns("attention", {at::eye(6).unsqueeze(0)}, {}).of("attention_entropy", 0, 0), 0);
  EXPECT_EQ(see_patterns("attention", {at::eye(6).unsqueeze(0)}, {true}).of("attention_entropy", 0, 0), 0);
}

TEST(AttentionEntropy, OfTwoByTwoIsWorkedOutByHand) {
  // Causal: only the second row has a choice, H(1/4, 3/4) / log 2.
  const at::Tensor a = at::tensor({1.0, 0.0, 0.25, 0.75}, at::kDouble).reshape({1, 2, 2});
  const double expected = (0.25 * std::log(4.0) + 0.75 * std::log(4.0 / 3.0)) / std::log(2.0);
  EXPECT_NEAR(see_patterns("attention", {a}, {true}).of("attention_entropy", 0, 0), expected, 1e-15);
  EXPECT_NEAR(see_patterns("attention", {a}, {}).of("attention_entropy", 0, 0), expected / 2, 1e-15);
}

TEST(AttentionEntropy, OfFewerQueriesThanKeysIsTheMeanOverTheQueries) {
  at::manual_seed(3);
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{3, 7}, {7, 3}}) {
    const at::Tensor p = at::softmax(at::randn({2, queries, keys}, at::kDouble), -1);
    const at::Tensor expected = (-(p * p.log()).sum(-1) / std::log(static_cast<double>(keys))).mean(-1);
    for (const int64_t rows : {0, 2})
      for (int h = 0; h < 2; ++h)
        EXPECT_NEAR(see_patterns("attention", {p}, {}, rows).of("attention_entropy", 0, h),
                    expected[h].item<double>(), 1e-14);
  }
}

TEST(AttentionEntropy, WithoutARowThatHasAChoiceIsNotDefined) {
  EXPECT_TRUE(see_patterns("attention", {at::ones({2, 1, 1})}, {}).samples.empty());
  EXPECT_TRUE(see_patterns("attention", {at::eye(4).unsqueeze(0)}, {true, 1}).samples.empty());
}

}  // namespace
}  // namespace rankscope::testing
