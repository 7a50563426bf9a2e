#include <gtest/gtest.h>

#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope::testing {
namespace {

double cosine(const at::Tensor& x) { return see_residual("similarity", x).of("token_cosine"); }

TEST(Similarity, IsTheMeanOverAllPairs) {
  at::manual_seed(1);
  for (const auto& [T, d] : {std::pair{2, 1}, {2, 5}, {15, 3}, {9, 40}})
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor x = (at::randn({T, d}) + 0.5).to(type);
      EXPECT_NEAR(cosine(x), reference::token_cosine(x), 1e-13);
    }
}

TEST(Similarity, OfTokensAllAlikeIsOneAndOfOrthogonalOnesZero) {
  EXPECT_NEAR(cosine(at::ones({7, 3})), 1, 1e-14);
  EXPECT_NEAR(cosine(at::eye(7)), 0, 1e-15);
  EXPECT_NEAR(cosine(at::tensor({1.0, -1.0}).reshape({2, 1})), -1, 1e-15);
}

TEST(Similarity, LengthsDoNotMatter) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({8, 5}, at::kDouble);
  EXPECT_NEAR(cosine(x * at::arange(1, 9, at::kDouble).unsqueeze(1)), cosine(x), 1e-14);
}

TEST(Similarity, ATokenOfNormZeroHasNoDirectionAndIsLeftOut) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({6, 4});
  EXPECT_NEAR(cosine(at::cat({x, at::zeros({2, 4})})), cosine(x), 1e-14);
}

TEST(Similarity, OfOneTokenIsNotDefined) {
  EXPECT_TRUE(see_residual("similarity", at::ones({1, 3})).samples.empty());
  EXPECT_TRUE(see_residual("similarity", at::zeros({4, 3})).samples.empty());
}

TEST(Similarity, OfContentLeavesSpecialTokensOut) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({7, 4});
  const Collected got = see_residual("similarity", x, Packed({7}, {0, 1, 1, 1, 0, 1, 0}));
  const at::Tensor kept = x.index_select(0, at::tensor({1, 2, 3, 5}, at::kLong));
  EXPECT_NEAR(got.content("token_cosine"), reference::token_cosine(kept), 1e-13);
}

}  // namespace
}  // namespace rankscope::testing
