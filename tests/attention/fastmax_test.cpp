// What is promised of Fastmax: the sheet on FAST, (d).
#include <gtest/gtest.h>

#include "attention/patterns.h"
#include "base/error.h"

namespace rankscope::test {
namespace {

TEST(Fastmax, ItsRankIsTheNumberOfItsFeatures) {
  at::manual_seed(1);
  const at::Tensor q = normals(200, 8) * 0.35, k = normals(200, 8) * 0.35;
  AttentionSpec spec;
  spec.d_qk = 8;
  for (const auto& [variant, rank] : {std::pair<const char*, int64_t>{"fastmax:p=1", 9},
                                      {"fastmax:p=2", 45},
                                      {"fastmax:p=3", 165},
                                      {"fastmax:p=2,norm=token_mean", 45},
                                      {"fastmax:p=2,norm=own_mean", 36},
                                      {"fastmax:p=2,norm=longest", 45},
                                      {"fastmax:p=1,norm=standardised", 8},
                                      {"fastmax:p=2,norm=standardised", 35},
                                      {"fastmax:p=3,norm=standardised", 112}}) {
    spec.variant = variant;
    EXPECT_EQ(rank_of(pattern_of({variant, 1 / std::sqrt(8.0)}, q, k), 1e-12), rank) << variant;
    EXPECT_EQ(attention_variant(variant).rank_ceiling(spec, 200), rank) << variant;
    EXPECT_EQ(attention_variant(variant).rank_ceiling(spec, 5), 5) << variant;
  }
  EXPECT_EQ(rank_of(pattern_of({"softmax"}, q, k), 1e-12), 200);
}

TEST(Fastmax, AMaskedMatrixIsTriangularAndHasFullRank) {
  at::manual_seed(2);
  const at::Tensor q = normals(60, 3), k = normals(60, 3);
  EXPECT_EQ(rank_of(pattern_of({"fastmax", 1.0, true}, q, k), 1e-12), 60);
  AttentionSpec spec;
  spec.variant = "fastmax";
  spec.d_qk = 3;
  spec.causal = true;
  EXPECT_EQ(attention_variant("fastmax").rank_ceiling(spec, 60), 60);
}

// |s| <= 1: f_2 is at least 1/2 and at most 5/2, and f'/f between -1 and 1.
TEST(Fastmax, SecondDegreeGivesNoKeyMoreThanFiveShares) {
  at::manual_seed(3);
  for (int draw = 0; draw < 20; ++draw) {
    const int64_t n = 5 + 7 * draw;
    const at::Tensor q = normals(n, 6), k = normals(n, 6);
    const at::Tensor a = pattern_of({"fastmax:p=2,norm=own_mean"}, q, k);
    ASSERT_GT(a.min().item<double>(), 0.0);
    ASSERT_LE(static_cast<double>(n) * a.max().item<double>(), 5.0);
  }
}

TEST(Fastmax, OddDegreesSayThatAWeightFellBelowZero) {
  const at::Tensor q = at::full({2, 1}, 4.0, at::kDouble),
                   k = at::tensor({1.0, -1.0}, at::kDouble).unsqueeze(1);
  for (const char* variant : {"fastmax:p=1", "fastmax:p=3"}) {
    try {
      pattern_of({variant, 8.0}, q, k);
      ADD_FAILURE() << variant << " gave numbers";
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("falls below zero"), std::string::npos) << error.message();
    }
  }
  EXPECT_NO_THROW(pattern_of({"fastmax:p=2", 8.0}, q, k));
}

TEST(Fastmax, ThePolynomialIsTheExponentialsUpToItsNextTerm) {
  at::manual_seed(4);
  const at::Tensor q = normals(9, 4), k = normals(9, 4);
  for (const int p : {1, 2, 3}) {
    // With small scores s the weights differ by about s^(p+1) / (p+1)!, here at most 0.1^(p+1).
    const double scale = 0.1 / at::matmul(q, k.t()).abs().max().item<double>();
    const std::string variant = "fastmax:p=" + std::to_string(p);
    const double off = largest(pattern_of({variant, 8 * scale}, q, k) - pattern_of({"softmax", scale}, q, k));
    EXPECT_LT(off, std::pow(0.1, p + 1));
    EXPECT_GT(off, 0.0);
  }
}

TEST(Fastmax, NormsThatLookAtAllTokensRefuseACausalMask) {
  const at::Tensor x = normals(4, 4);
  for (const char* norm : {"token_mean", "own_mean", "longest"})
    EXPECT_THROW(pattern_of({std::string("fastmax:norm=") + norm, 1.0, true}, x, x), Error) << norm;
  EXPECT_NO_THROW(pattern_of({"fastmax:norm=standardised", 1.0, true}, x, x));
}

}  // namespace
}  // namespace rankscope::test
