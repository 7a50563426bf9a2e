// The lens logits: in how many directions scores differ.
#include <gtest/gtest.h>

#include "support/lens_run.h"

namespace rankscope::testing {
namespace {

constexpr int64_t kTokens = 24;

/// [1, T, T] with these singular values, and columns of mean zero so that rows have it.
at::Tensor scores_of(const std::vector<double>& sigma) {
  const auto n = static_cast<int64_t>(sigma.size());
  const at::Tensor U = std::get<0>(at::linalg_qr(at::randn({kTokens, n}, at::kDouble)));
  const at::Tensor random = at::randn({kTokens, n}, at::kDouble);
  const at::Tensor V = std::get<0>(at::linalg_qr(random - random.mean(0)));
  return (U * at::tensor(sigma, at::kDouble)).matmul(V.t()).unsqueeze(0);
}

/// Sums over 24 x 24 doubles, squared: some hundred roundings.
constexpr double kSums = 1e-12;

TEST(Logits, RankCountsDirectionsByTheirShareOfTheEnergy) {
  at::manual_seed(1);
  EXPECT_NEAR(see_patterns("logits", {scores_of({2})}, {}).of("logit_rank", 0, 0), 1, kSums);
  EXPECT_NEAR(see_patterns("logits", {scores_of({2, 2, 2})}, {}).of("logit_rank", 0, 0), 3, kSums);
  EXPECT_NEAR(see_patterns("logits", {scores_of({2, 1})}, {}).of("logit_rank", 0, 0), 25.0 / 17, kSums);
}

TEST(Logits, WhatAllKeysOfAQueryHaveInCommonIsNoDirection) {
  at::manual_seed(2);
  const at::Tensor scores = scores_of({2, 1}), common = 10 * at::randn({1, kTokens, 1}, at::kDouble);
  // The common part is ten times as large, and so are the roundings it leaves.
  EXPECT_NEAR(see_patterns("logits", {scores + common}, {}).of("logit_rank", 0, 0), 25.0 / 17, 100 * kSums);
}

TEST(Logits, WhatRoundingLeavesOfEqualScoresIsNothing) {
  at::manual_seed(4);
  const at::Tensor common = at::randn({1, kTokens, 1}, at::kDouble).expand({1, kTokens, kTokens});
  const at::Tensor noise = at::randn({1, kTokens, kTokens}, at::kDouble);
  const auto seen = [&](double size) { return see_patterns("logits", {common + size * noise}, {}); };
  EXPECT_EQ(seen(1e-16).of("logit_rms", 0, 0), 0);
  EXPECT_THROW(seen(1e-16).of("logit_rank", 0, 0), std::exception);  // there is none
  EXPECT_GT(seen(1e-12).of("logit_rms", 0, 0), 0);
  EXPECT_GT(seen(1e-12).of("logit_rank", 0, 0), 1);
}

TEST(Logits, AQueryOfOneKeyHasNothingToCompare) {
  const at::Tensor one = at::full({1, 1, 1}, 3.0, at::kDouble);
  EXPECT_THROW(see_patterns("logits", {one}, {}).of("logit_rms", 0, 0), std::exception);  // there is none
}

// A mask alone has full rank, so nothing masked may be read.
TEST(Logits, MaskedScoresAreNotRead) {
  at::manual_seed(3);
  at::Tensor scores = scores_of({2});
  const at::Tensor above = at::ones({kTokens, kTokens}, at::kBool).triu(1);
  scores.masked_fill_(above.unsqueeze(0), -std::numeric_limits<double>::infinity());
  EXPECT_NEAR(see_patterns("logits", {scores}, {true, 0}).of("logit_rank", 0, 0), 1, 10 * kSums);
  EXPECT_NEAR(see_patterns("logits", {scores}, {true, 0}, 5).of("logit_rank", 0, 0), 1, 10 * kSums);
}

}  // namespace
}  // namespace rankscope::testing
