#include <gtest/gtest.h>

#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope {
namespace {

using namespace testing;

double composite_at(const at::Tensor& X, const at::Tensor& x) { return reference::composite(X - x); }

TEST(ResidualMin, LiesBetweenItsBoundAndTheMean) {
  at::manual_seed(2);
  for (const auto& [tokens, width] : {std::pair{2, 3}, {5, 4}, {40, 16}, {7, 1}}) {
    at::Tensor X = at::randn({tokens, width}, at::kDouble);
    X[0] *= 5;  // one token far away: mean and median differ
    const Collected seen = see_residual("residual_min", X);
    const double found = seen.of("residual_l1inf_min"), bound = seen.of("residual_l1inf_min_bound");
    const double mean = composite_at(X, X.mean(0));
    EXPECT_LE(bound, found * (1 + 1e-12));
    EXPECT_LE(found, mean * (1 + 1e-12));
    EXPECT_GE(found, mean / (2 * (1 - 1.0 / tokens)) * (1 - 1e-12));  // the mean is never worse than that
    // No point of a random search does better than the certificate allows.
    for (int k = 0; k < 200; ++k)
      EXPECT_GE(composite_at(X, X.mean(0) + at::randn({width}, at::kDouble)), bound * (1 - 1e-12));
  }
}

TEST(ResidualMin, TheMedianMinimisesTheColumnSums) {
  at::manual_seed(3);
  const at::Tensor X = at::randn({9, 5}, at::kDouble);
  const double found = see_residual("residual_min", X).of("residual_l1_min");
  const at::Tensor median = std::get<0>(X.median(0));
  EXPECT_NEAR(found, (X - median).abs().sum(0).max().item<double>(), 1e-12 * found);
  for (int k = 0; k < 500; ++k)
    EXPECT_GE((X - median - 0.3 * at::randn({5}, at::kDouble)).abs().sum(0).max().item<double>(),
              found * (1 - 1e-12));
}

TEST(ResidualMin, EqualTokensAreAtDistanceZero) {
  const Collected seen = see_residual("residual_min", at::ones({4, 3}, at::kDouble));
  EXPECT_EQ(seen.of("residual_l1inf_min"), 0.0);
  EXPECT_EQ(seen.of("residual_l1_min"), 0.0);
}

}  // namespace
}  // namespace rankscope
