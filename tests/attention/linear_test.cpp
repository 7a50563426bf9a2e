// Attention as a state that is read: the pattern and the recurrence say the same.
#include <gtest/gtest.h>

#include "attention/patterns.h"

namespace rankscope::test {
namespace {

// S_t = keep S_{t-1} + k_t v_t^T, o_t = q_t S_t.
at::Tensor recurrent(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double keep) {
  at::Tensor state = at::zeros({k.size(1), v.size(1)}, at::kDouble);
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < q.size(0); ++t) {
    state = state * keep + at::outer(k[t], v[t]);
    out.push_back(at::matmul(q[t], state));
  }
  return at::stack(out);
}

TEST(LinearAttention, ThePatternIsTheRecurrenceUpTo257Tokens) {
  at::manual_seed(1);
  for (const int64_t n : {1, 2, 16, 257}) {
    const at::Tensor q = normals(n, 8), k = normals(n, 8), v = normals(n, 5);
    const auto off = [&](const std::string& variant, double keep) {
      const at::Tensor expected = recurrent(q, k, v, keep);
      return largest(at::matmul(pattern_of({variant, 1.0, true}, q, k), v) - expected) / largest(expected);
    };
    EXPECT_LE(off("linear", 1.0), 1e-12) << n;
    EXPECT_LE(off("decay:slowest=3,fastest=3", 1 - 0.125), 1e-12) << n;
  }
}

TEST(LinearAttention, HeadsForgetAtRatesBetweenTheTwoThatAreTold) {
  AttentionSpec spec;
  spec.variant = "decay:slowest=6,fastest=2";
  spec.heads = spec.kv_heads = 3;
  spec.causal = true;
  const std::string name = "attn";
  const at::Tensor one = at::ones({1, 5, 3, 1}, at::kDouble), places = at::arange(5).unsqueeze(0), none;
  const Weights weights;
  const at::Tensor p = attention_variant(spec.variant)
                           .prepare({spec, weights, name, one, one, places, places, none})
                           ->pattern(0, 1, 0, 5);
  for (const auto& [h, keep] :
       {std::pair<int64_t, double>{0, 1 - 1.0 / 64}, {1, 1 - 1.0 / 16}, {2, 1 - 1.0 / 4}})
    for (int64_t away = 0; away < 5; ++away)
      EXPECT_NEAR(p[0][h][4][4 - away].item<double>(), std::pow(keep, away), 1e-14) << h << " " << away;
}

TEST(LinearAttention, ItsRankIsTheWidthWithoutAMask) {
  at::manual_seed(2);
  const at::Tensor q = normals(40, 6), k = normals(40, 6);
  AttentionSpec spec;
  spec.variant = "linear";
  spec.d_qk = 6;
  EXPECT_EQ(rank_of(pattern_of({"linear"}, q, k), 1e-12), 6);
  EXPECT_EQ(attention_variant("linear").rank_ceiling(spec, 40), 6);
  spec.causal = true;
  EXPECT_EQ(attention_variant("linear").rank_ceiling(spec, 40), 40);
}

TEST(DifferentialAttention, IsTheDifferenceOfTwoSoftmaxesAndItsRowsSumToWhatIsLeft) {
  at::manual_seed(3);
  const at::Tensor q = normals(7, 6), k = normals(7, 6);
  OneHead how{"differential:start=0.3", 0.7};
  const at::Tensor a = normals(4, 3) * 0.5;
  const char* names[] = {"attn.lambda_q1", "attn.lambda_k1", "attn.lambda_q2", "attn.lambda_k2"};
  for (int64_t i = 0; i < 4; ++i) how.weights.set(names[i], a[i]);
  const double lambda =
      std::exp((a[0] * a[1]).sum().item<double>()) - std::exp((a[2] * a[3]).sum().item<double>()) + 0.3;
  const auto half = [&](int64_t which) {
    return at::softmax(at::matmul(q.narrow(1, 3 * which, 3), k.narrow(1, 3 * which, 3).t()) * 0.7, 1);
  };
  const at::Tensor p = pattern_of(how, q, k);
  EXPECT_LE(largest(p - (half(0) - lambda * half(1))), 1e-14);
  EXPECT_LE(largest(p.sum(1) - (1 - lambda)), 1e-14);
}

TEST(SigmoidAttention, EveryKeyIsTakenOnItsOwnAccount) {
  at::manual_seed(4);
  const at::Tensor scores = normals(5, 8);
  EXPECT_LE(largest(pattern_of({"sigmoid"}, scores) - at::sigmoid(scores - std::log(8.0))), 1e-15);
  EXPECT_LE(largest(pattern_of({"sigmoid:log_keys=0"}, scores) - at::sigmoid(scores)), 1e-15);
}

TEST(SinkColumn, ARowLacksWhatTheKeyWithoutAValueTakes) {
  at::manual_seed(5);
  const at::Tensor scores = normals(5, 8), e = at::exp(scores);
  EXPECT_LE(largest(pattern_of({"sink_column"}, scores) - e / (1 + e.sum(1, true))), 1e-15);
  EXPECT_LE(largest(pattern_of({"sink_column:score=2"}, scores) - e / (std::exp(2.0) + e.sum(1, true))),
            1e-15);
}

}  // namespace
}  // namespace rankscope::test
