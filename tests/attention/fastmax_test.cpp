// What is promised of Fastmax: the sheet on FAST, (d).
#include <gtest/gtest.h>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "attention/patterns.h"
#include "base/error.h"

namespace rankscope::test {
namespace {

// What one head carries by its features; undefined where it would take the pattern.
at::Tensor by_features(const OneHead& how, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  AttentionSpec spec;
  spec.variant = how.variant;
  spec.d_qk = q.size(1);
  spec.d_v = v.size(1);
  spec.scale = how.scale;
  spec.causal = how.causal;
  const std::string name = "attn";
  const at::Tensor q4 = q.unsqueeze(0).unsqueeze(2), k4 = k.unsqueeze(0).unsqueeze(2), none,
                   places = at::arange(q.size(0)).unsqueeze(0);
  const at::Tensor z = attention_variant(spec.variant)
                           .output({spec, how.weights, name, q4, k4, places, places, none}, v.unsqueeze(0));
  return z.defined() ? z[0] : z;
}

// How many numbers the largest tensor has that is made while it lives.
class LargestTensor {
 public:
  LargestTensor() : seen_(std::make_shared<Seen>()), guard_(c10::DebugInfoKind::PROFILER_STATE, seen_) {}
  int64_t bytes() const { return seen_->most; }

 private:
  // Releases of LibTorch differ in the types of the totals: one of the two is the virtual one.
  struct Seen : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, int64_t size, int64_t, int64_t, c10::Device) {
      most = std::max(most, size);
    }
    void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) { most = std::max(most, size); }
    bool memoryProfilingEnabled() const override { return true; }
    int64_t most = 0;
  };
  std::shared_ptr<Seen> seen_;
  c10::DebugInfoGuard guard_;
};

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

// Sums of 200 products of numbers of order one, each off by 1e-16 in double and 6e-8 in single precision.
TEST(Fastmax, WhatItsFeaturesCarryIsWhatThePatternDoesWithTheSameGradient) {
  at::manual_seed(6);
  const at::Tensor v = normals(200, 4), weight = normals(200, 4);
  const at::Tensor q = normals(200, 5), k = normals(200, 5);
  for (const int p : {1, 2, 3})
    for (const bool causal : {false, true}) {
      const OneHead how{fmt::format("fastmax:p={},norm={}", p, causal ? "scaled" : "longest,longest=0.9"),
                        1 / at::matmul(q, k.t()).abs().max().item<double>(), causal};
      std::vector<at::Tensor> slopes[2];
      at::Tensor z[2];
      for (const bool features : {false, true}) {
        const at::Tensor a = q.clone().requires_grad_(true), b = k.clone().requires_grad_(true),
                         c = v.clone().requires_grad_(true);
        z[features] = features ? by_features(how, a, b, c) : at::matmul(pattern_of(how, a, b), c);
        ASSERT_TRUE(z[features].defined()) << how.variant;
        slopes[features] = torch::autograd::grad({(z[features] * weight).sum()}, {a, b, c});
      }
      EXPECT_LE(largest(z[1] - z[0]), 1e-12) << how.variant;
      for (size_t i = 0; i < 3; ++i)
        EXPECT_LE(largest(slopes[1][i] - slopes[0][i]), 1e-12 * (1 + largest(slopes[0][i]))) << how.variant;
      const at::Tensor single = by_features(how, q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat));
      EXPECT_LE(largest(single - z[0]), 1e-5 * largest(z[0])) << how.variant;
    }
}

// 969 features of 6,000 tokens are too many to hold; chunks of them are not.
TEST(Fastmax, HoldsNeitherThePatternNorAllFeaturesOfALongText) {
  at::manual_seed(7);
  constexpr int64_t N = 6000, D = 16, features = 969;
  const at::Tensor q = normals(N, D).to(at::kFloat), k = normals(N, D).to(at::kFloat),
                   v = normals(N, 2).to(at::kFloat);
  for (const bool causal : {false, true}) {
    const OneHead how{causal ? "fastmax:p=3,norm=standardised" : "fastmax:p=3,norm=own_mean", 1.0, causal};
    const at::Tensor a = q.clone().requires_grad_(true);
    int64_t most = 0;
    at::Tensor z;
    {
      const LargestTensor largest_made;
      z = by_features(how, a, k, v);
      ASSERT_TRUE(z.defined());
      torch::autograd::grad({z.sum()}, {a});
      most = largest_made.bytes() / static_cast<int64_t>(sizeof(float));
    }
    EXPECT_GE(most, N * D);  // it was seen
    EXPECT_LT(most, 4 * (N * D + features * D));
    // A few rows against the pattern.
    const at::Tensor few = q.narrow(0, causal ? N - 3 : 0, 3).to(at::kDouble);
    if (causal) {
      const at::Tensor s = at::matmul(at::layer_norm(few, {D}, {}, {}, 0),
                                      at::layer_norm(k.to(at::kDouble), {D}, {}, {}, 0).t()) /
                           D;
      at::Tensor f = 1 + s + s * s / 2 + s * s * s / 6;
      f = f.tril(N - 3);
      const at::Tensor expected = at::matmul(f / f.sum(1, true), v.to(at::kDouble));
      EXPECT_LE(largest(z.narrow(0, N - 3, 3).detach() - expected), 1e-5 * largest(expected));
    }
  }
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

// So a score moves what is carried by at most 5 |v - o| / n, which is 10 max |v| / n.
TEST(Fastmax, SecondDegreeMovesLittleWithAnyOneScore) {
  at::manual_seed(8);
  constexpr int64_t n = 40;
  // Scores between -1 and 1; the norm "scaled" divides them by 8.
  const at::Tensor scores = (2 * at::rand({n, n}, at::kDouble) - 1).requires_grad_(true), v = normals(n, 1);
  const at::Tensor o = at::matmul(pattern_of({"fastmax:p=2", 8.0}, scores), v);
  // Row i of the slope of the sum is that of o_i: no other row reads its scores.
  const at::Tensor slope = torch::autograd::grad({o.sum()}, {scores})[0];
  EXPECT_LE(n * largest(slope), 10 * largest(v));
  EXPECT_GT(n * largest(slope), 0.5 * largest(v));
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
