// What is promised of attention that is normalised over queries too: the sheet on doubly normalised
// attention, (d).
#include <gtest/gtest.h>

#include "attention/patterns.h"
#include "base/error.h"

namespace rankscope::test {
namespace {

constexpr double kRounding = 1e-12;  // a few hundred roundings of sums of at most 33 numbers

TEST(DoublyNormalised, NoColumnFallsBelowItsThreeBounds) {
  at::manual_seed(1);
  double least = 1e300, least_of_softmax = 1e300;
  for (int draw = 0; draw < 2000; ++draw) {
    const int64_t n = 4 + draw % 29, S = 3 + draw % 31;
    const at::Tensor scores = normals(n, S) * (0.1 + 4.9 * (draw % 50) / 49.0);
    const at::Tensor columns = pattern_of({"doubly_normalised"}, scores).sum(0);
    const at::Tensor xi = at::softmax(scores, 0), r = xi.sum(1);
    const double slack = 1 + kRounding;
    ASSERT_TRUE((columns * slack >= 1 / (xi * r.unsqueeze(1)).sum(0)).all().item<bool>()) << draw;
    ASSERT_GE(columns.min().item<double>() * slack, 1 / r.max().item<double>()) << draw;
    ASSERT_GE(columns.min().item<double>() * slack, 1 / static_cast<double>(S)) << draw;
    least = std::min(least, static_cast<double>(S) * columns.min().item<double>());
    least_of_softmax =
        std::min(least_of_softmax,
                 static_cast<double>(S) * pattern_of({"softmax"}, scores).sum(0).min().item<double>());
  }
  EXPECT_GE(least, 1.0);
  EXPECT_LT(least_of_softmax, 0.01) << "softmax has no such bound, and these draws should show it";
}

TEST(DoublyNormalised, ADominantKeyExplainsTheOthersAwayUnderSoftmaxOnly) {
  at::manual_seed(2);
  at::Tensor scores = normals(16, 16);
  scores.select(1, 3) += 8.0;
  const auto explained_away = [&](const char* variant) {
    return (pattern_of({variant}, scores).sum(0) < 1.0 / 16).sum().item<int64_t>();
  };
  EXPECT_EQ(explained_away("softmax"), 15);
  EXPECT_EQ(explained_away("doubly_normalised"), 0);
}

// Queries as centres, keys as data: the pattern times the keys is the M-step.
TEST(DoublyNormalised, IsAStepOfExpectationMaximisationAndNeverLowersTheLikelihood) {
  at::manual_seed(3);
  const auto squares = [](const at::Tensor& x) { return (x * x).sum(1, true) / 2; };
  const auto likelihood = [&](const at::Tensor& centres, const at::Tensor& data) {
    const at::Tensor scores = at::matmul(centres, data.t()) - squares(centres) - squares(data).t();
    return at::logsumexp(scores, {0}).sum().item<double>();
  };
  for (int draw = 0; draw < 500; ++draw) {
    const at::Tensor centres = normals(5, 3) * 2, data = normals(20, 3) * 2;
    // -|q - k|^2 / 2 up to what is the same for every query of a key.
    const at::Tensor q = at::cat({centres, -squares(centres)}, 1),
                     k = at::cat({data, at::ones({20, 1}, at::kDouble)}, 1);
    const at::Tensor moved = at::matmul(pattern_of({"doubly_normalised"}, q, k), data);
    ASSERT_GE(likelihood(moved, data), likelihood(centres, data) - 1e-10) << draw;
  }
}

TEST(DoublyNormalised, ABiasOfAKeyChangesNothingAndDoesNotCostRank) {
  at::manual_seed(4);
  const at::Tensor scores = normals(16, 16) + 3 * at::eye(16, at::kDouble);
  at::Tensor sink = scores.clone();
  sink.select(1, 0) += 8.0;
  const auto rank = [&](const char* variant, const at::Tensor& s) {
    return effective_rank(pattern_of({variant}, s));
  };
  EXPECT_LE(largest(pattern_of({"doubly_normalised"}, sink) - pattern_of({"doubly_normalised"}, scores)),
            kRounding);
  EXPECT_LT(rank("softmax", sink), 2.0);
  EXPECT_GT(rank("softmax", scores), 8.0);
  EXPECT_NEAR(rank("doubly_normalised", sink), rank("doubly_normalised", scores), 1e-9);
}

TEST(DoublyNormalised, TheHybridIsOneOrTheOtherAtItsEndsAndKeepsItsShareOfTheBound) {
  at::manual_seed(5);
  const at::Tensor scores = normals(9, 7) * 3;
  const auto hybrid = [&](double mix) {
    OneHead how{"hybrid_normalised"};
    how.weights.set("attn.mix", at::full({1}, mix, at::kDouble));
    return pattern_of(how, scores);
  };
  EXPECT_LE(largest(hybrid(-1000) - pattern_of({"softmax"}, scores)), kRounding);
  EXPECT_LE(largest(hybrid(1000) - pattern_of({"doubly_normalised"}, scores)), kRounding);
  const double u = 1 / (1 + std::exp(-0.4));
  EXPECT_GE(hybrid(0.4).sum(0).min().item<double>() * (1 + kRounding), u / 7);
}

TEST(Sinkhorn, OneRoundIsDoublyNormalisedAndManyMakeColumnsEqual) {
  at::manual_seed(6);
  const at::Tensor scores = normals(12, 12);
  EXPECT_EQ(largest(pattern_of({"sinkhorn:rounds=1"}, scores) - pattern_of({"doubly_normalised"}, scores)),
            0.0);
  double before = 1e300;
  for (const char* variant :
       {"sinkhorn:rounds=1", "sinkhorn:rounds=3", "sinkhorn:rounds=10", "sinkhorn:rounds=100"}) {
    const double off = largest(pattern_of({variant}, scores).sum(0) - 1);
    EXPECT_LT(off, before) << variant;
    before = off;
  }
  EXPECT_LT(before, 1e-9);
}

TEST(PrefixNormalised, IsTheDoublyNormalisedRowOfTheTextUpToThere) {
  at::manual_seed(7);
  const at::Tensor q = normals(300, 4), k = normals(300, 4);  // longer than the rows it holds at once
  const at::Tensor causal = pattern_of({"prefix_normalised", 0.5, true}, q, k);
  for (const int64_t row : {0, 1, 7, 255, 256, 299}) {
    // Of the keys that this row sees, each is shared out among the queries that see it too.
    const int64_t n = row + 1;
    at::Tensor scores = at::matmul(q.narrow(0, 0, n), k.narrow(0, 0, n).t()) * 0.5;
    scores = scores.masked_fill(at::ones({n, n}, at::kBool).triu(1), -INFINITY);
    const at::Tensor expected = at::softmax(scores[row] - at::logsumexp(scores, {0}), 0);
    EXPECT_LE(largest(causal[row].narrow(0, 0, n) - expected), kRounding) << row;
  }
}

TEST(VariantText, OptionsAreCheckedAndUnknownOnesNamed) {
  const auto refused = [](const char* text) {
    try {
      attention_variant(text);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("taken");
  };
  EXPECT_EQ(refused("sinkhorn:rounds=7"), "taken");
  EXPECT_EQ(refused("sinkhorn:rounds=0"),
            "rounds of sinkhorn attention is a whole number from 1 to 100, not 0");
  EXPECT_EQ(refused("sinkhorn:rounds=1.9"),
            "rounds of sinkhorn attention is a whole number from 1 to 100, not 1.9");
  EXPECT_EQ(refused("fastmax:p=2.7"), "p of fastmax attention is a whole number from 1 to 3, not 2.7");
  EXPECT_EQ(refused("sinkhorn:round=7"), "there is no option of sinkhorn attention \"round\"");
  EXPECT_EQ(refused("softmax:rounds=7"), "softmax attention has no options");
  EXPECT_EQ(refused("sinkhorn:rounds"), "\"sinkhorn:rounds\" is no attention variant");
  EXPECT_EQ(refused("sinkhorn:rounds=2,rounds=3"), "\"sinkhorn:rounds=2,rounds=3\" is no attention variant");
  EXPECT_EQ(refused("softmix"), "there is no attention variant \"softmix\"");
}

}  // namespace
}  // namespace rankscope::test
