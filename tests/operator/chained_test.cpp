// Products of attention matrices along a path.
#include "operator/chained.h"

#include <gtest/gtest.h>

#include "operator/dense_reference.h"
#include "support/reference.h"

namespace rankscope {
namespace {

using namespace test;

at::Tensor mixing(double a) {  // two tokens that keep 1 - a of themselves
  return at::tensor({1 - a, a, a, 1 - a}, at::kDouble).view({2, 2});
}

TEST(Chained, TwoTokensApproachRankOneByAConstantFactor) {
  // The second singular value of each factor is 1 - 2a, with the same vectors in all of them.
  const std::vector<at::Tensor> patterns(5, mixing(0.2).unsqueeze(0));
  for (int k = 1; k <= 5; ++k) {
    Path path(5, -1);
    for (int l = 0; l < k; ++l) path[static_cast<size_t>(l)] = 0;
    EXPECT_NEAR(distance_from_rank_one(chained_attention(patterns, path)), std::pow(0.6, k), 1e-14);
  }
}

TEST(Chained, OneRowForAllIsOfRankOne) {
  const at::Tensor q = at::softmax(at::arange(6, at::kDouble), 0);
  EXPECT_LT(distance_from_rank_one(q.expand({6, 6})), 1e-15);
}

TEST(Chained, TheRankOnePartIsThatOfTheSvd) {
  at::manual_seed(5);
  for (const double sharpness : {0.1, 1.0, 4.0}) {
    const at::Tensor P = at::softmax(sharpness * at::randn({12, 12}, at::kDouble), -1);
    const auto [U, S, Vh] = at::linalg_svd(P, false);
    const at::Tensor rest = P - at::outer(U.select(1, 0) * S[0], Vh[0]);
    EXPECT_NEAR(distance_from_rank_one(P), reference::composite(rest) / reference::composite(P), 1e-12);
  }
}

TEST(Chained, LaterLayersStandOnTheLeft) {
  at::manual_seed(3);
  const at::Tensor P = at::softmax(at::randn({3, 2, 4, 4}, at::kDouble), -1);
  const std::vector<at::Tensor> patterns{P[0], P[1], P[2]};
  const Path path{1, -1, 0};  // head 1 of layer 0, layer 1 skipped, head 0 of layer 2
  EXPECT_LT(distance(chained_attention(patterns, path), P[2][0].matmul(P[0][1])), 1e-15);
  EXPECT_LT(distance(chained_attention(patterns, path, true), P[0][1].matmul(P[2][0])), 1e-15);
}

TEST(Chained, PatternsAreThoseOfTheFrozenNetwork) {
  const Tiny m(NormPlace::pre, "", {}, {5, 7});
  const FrozenNetwork frozen = m.freeze();
  const std::vector<at::Tensor> second = patterns_of(frozen.trunk(), 1);
  ASSERT_EQ(second.size(), 3u);
  for (const at::Tensor& P : second) {
    EXPECT_EQ(P.sizes().vec(), (std::vector<int64_t>{4, 7, 7}));
    EXPECT_LT((P.sum(-1) - 1).abs().max().item<double>(), 1e-14);
  }
}

}  // namespace
}  // namespace rankscope
