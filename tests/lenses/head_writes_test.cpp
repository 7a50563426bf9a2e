// The lenses of what attention scores and writes, against full matrices.
#include <gtest/gtest.h>

#include <cmath>

#include "support/lens_run.h"

namespace rankscope::testing {
namespace {

constexpr int64_t kHeads = 3, kWidth = 10, kOwn = 4;
/// Products and sums of at most a few hundred doubles.
constexpr double kSums = 1e-12;

struct Written {
  at::Tensor z, W_O, x;
  at::Tensor output(int64_t h) const {  // centred, [N, width]
    const at::Tensor y = z.select(1, h).matmul(W_O.narrow(1, h * kOwn, kOwn).t());
    return y - y.mean(0);
  }
  Collected see() const {
    const Packed packed({z.size(0)});
    const Packing packing = packed.packing();
    Seeing seeing(lens_named("head_writes"));
    seeing.factored({z, W_O, x, packing});
    return seeing.finish();
  }
};

Written random_heads(int64_t tokens) {
  const auto wide = at::kDouble;
  return {at::randn({tokens, kHeads, kOwn}, wide), at::randn({kWidth, kHeads * kOwn}, wide),
          at::randn({tokens, kWidth}, wide)};
}

TEST(HeadWrites, WhatAHeadWritesThatDiffersBetweenTokensStandsBesideTheStream) {
  at::manual_seed(1);
  const Written w = random_heads(30);
  const Collected got = w.see();
  const double beside = (w.x - w.x.mean(0)).norm().item<double>();
  for (int h = 0; h < kHeads; ++h)
    EXPECT_NEAR(got.of("head_varied_rel", 0, h), w.output(h).norm().item<double>() / beside, kSums);
}

TEST(HeadWrites, AHeadThatWritesOneVectorVariesByNothing) {
  at::manual_seed(2);
  Written w = random_heads(30);
  w.z.select(1, 1).copy_(w.z.select(1, 1).mean(0).expand({30, kOwn}).clone());
  EXPECT_NEAR(w.see().of("head_varied_rel", 0, 1), 0, 1e-7);  // the square root of a rounding
}

TEST(HeadWrites, AMassiveTokenMakesNoHeadSmall) {
  at::manual_seed(5);
  Written w = random_heads(30);
  w.x[0][4] = 3000;  // and that token is left out of both sides
  const Written rest{w.z.narrow(0, 1, 29), w.W_O, w.x.narrow(0, 1, 29)};
  for (int h = 0; h < kHeads; ++h)
    EXPECT_NEAR(w.see().of("head_varied_rel", 0, h), rest.see().of("head_varied_rel", 0, h), kSums);
}

TEST(HeadWrites, TokensThatDifferByRoundingAloneTellNothing) {
  at::manual_seed(6);
  Written w = random_heads(30);
  w.x.copy_(w.x[0].expand_as(w.x).clone() * (1 + 1e-16 * at::randn({30, 1}, at::kDouble)));
  const Collected got = w.see();
  EXPECT_FALSE(got.has("head_varied_rel", 0, 1));
  EXPECT_ANY_THROW(got.total("head_predicted", 1));  // no row
}

TEST(HeadWrites, WhatOthersWriteTooIsTheShareThatLeastSquaresFinds) {
  at::manual_seed(3);
  const Written w = random_heads(30);
  const Collected got = w.see();
  for (int h = 0; h < kHeads; ++h) {
    std::vector<at::Tensor> others;
    for (int k = 0; k < kHeads; ++k)
      if (k != h) others.push_back(w.output(k).flatten());
    const at::Tensor A = at::stack(others, 1), y = w.output(h).flatten();
    const at::Tensor rest =
        y - A.matmul(at::linalg_solve(A.t().matmul(A), A.t().matmul(y.unsqueeze(1)))).squeeze(1);
    const double share = 1 - rest.square().sum().item<double>() / y.square().sum().item<double>();
    EXPECT_NEAR(got.total("head_predicted", h).value, share, 1e-8);  // the ridge of 1e-9, a few times
  }
}

TEST(HeadWrites, TwoHeadsThatAreOneAreFound) {
  at::manual_seed(4);
  Written w = random_heads(30);
  w.z.select(1, 2).copy_(w.z.select(1, 0));
  w.W_O.narrow(1, 2 * kOwn, kOwn).copy_(0.5 * w.W_O.narrow(1, 0, kOwn));
  const Collected got = w.see();
  EXPECT_GT(got.total("head_predicted", 0).value, 1 - 1e-7);
  EXPECT_GT(got.total("head_predicted", 2).value, 1 - 1e-7);
  EXPECT_LT(got.total("head_predicted", 1).value, 0.5);
}

TEST(Logits, AreWithoutWhatIsCommonToAllKeysOfAQuery) {
  at::manual_seed(5);
  const at::Tensor scores = at::randn({2, 12, 12}, at::kDouble);
  const at::Tensor common = at::randn({2, 12, 1}, at::kDouble) * 50;
  const Collected a = see_patterns("logits", {scores}, {}),
                  b = see_patterns("logits", {scores + common}, {}, 5);
  for (int h = 0; h < 2; ++h) {
    const at::Tensor c = scores[h] - scores[h].mean(-1, true);
    EXPECT_NEAR(a.of("logit_rms", 0, h), std::sqrt(c.square().mean().item<double>()), kSums);
    EXPECT_NEAR(b.of("logit_rms", 0, h), a.of("logit_rms", 0, h), 100 * kSums);
  }
}

TEST(Written, IsTheShareThatDiffersBetweenTokens) {
  at::manual_seed(6);
  const at::Tensor y = at::randn({20, kWidth}, at::kDouble) + 2;
  EXPECT_NEAR(see_residual("written", y).of("attn_out_sd_rel"),
              (y - y.mean(0)).norm().item<double>() / y.norm().item<double>(), kSums);
  EXPECT_NEAR(see_residual("written", at::ones({20, kWidth}, at::kDouble)).of("attn_out_sd_rel"), 0, kSums);
}

}  // namespace
}  // namespace rankscope::testing
