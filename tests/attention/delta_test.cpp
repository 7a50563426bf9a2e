// The delta rule: recurrence and matrix agree, and what a state can hold (the sheet on hybrid attention, (d)
// 3 and 4).
#include <gtest/gtest.h>

#include "attention/patterns.h"

namespace rankscope::test {
namespace {

at::Tensor of_length_one(const at::Tensor& x) { return x / x.norm(2, {1}, true); }

// The pattern of one head told how much to write and keep, [T] each; keep may be undefined.
at::Tensor delta_pattern(const at::Tensor& q, const at::Tensor& k, const at::Tensor& write,
                         const at::Tensor& keep) {
  AttentionSpec spec;
  spec.variant = "delta";
  spec.d_qk = spec.d_v = q.size(1);
  spec.causal = true;
  const std::string name = "attn";
  const Weights weights;
  const at::Tensor q4 = q.unsqueeze(0).unsqueeze(2), k4 = k.unsqueeze(0).unsqueeze(2), none;
  const at::Tensor gates =
      (keep.defined() ? at::stack({write, keep}, 1) : write.unsqueeze(1)).unsqueeze(0).unsqueeze(2);
  const at::Tensor places = at::arange(q.size(0)).unsqueeze(0);
  return attention_variant("delta")
      .prepare({spec, weights, name, q4, k4, places, places, none, &gates})
      ->pattern(0, 1, 0, q.size(0))[0][0];
}

TEST(DeltaRule, TheMatrixIsTheRecurrenceUpTo257Tokens) {
  at::manual_seed(1);
  for (const int64_t n : {1, 2, 33, 257})
    for (const bool forgets : {false, true}) {
      const at::Tensor q = normals(n, 16), k = normals(n, 16), v = normals(n, 7);
      const at::Tensor write = at::sigmoid(at::randn({n}, at::kDouble));
      const at::Tensor keep = forgets ? at::sigmoid(at::randn({n}, at::kDouble) + 2) : at::Tensor();
      at::Tensor state = at::zeros({16, 7}, at::kDouble);
      std::vector<at::Tensor> out;
      for (int64_t t = 0; t < n; ++t) {
        const at::Tensor key = k[t] / k[t].norm();
        if (forgets) state = state * keep[t];
        state = state + at::outer(key, (v[t] - at::matmul(key, state)) * write[t]);
        out.push_back(at::matmul(q[t] / q[t].norm(), state));
      }
      EXPECT_LE(largest(at::matmul(delta_pattern(q, k, write, keep), v) - at::stack(out)), 1e-10)
          << n << forgets;
    }
}

TEST(DeltaRule, OrthonormalKeysAreRecalledExactly) {
  at::manual_seed(2);
  const int64_t m = 16;
  const at::Tensor k = std::get<0>(at::linalg_qr(normals(m, m))), v = normals(m, 5);
  // m pairs are written; then each is asked for, and asking writes nothing.
  const at::Tensor twice = at::cat({k, k}),
                   write = at::cat({at::ones({m}, at::kDouble), at::zeros({m}, at::kDouble)});
  const at::Tensor out = at::matmul(delta_pattern(twice, twice, write, {}), at::cat({v, at::zeros_like(v)}));
  EXPECT_LE(largest(out.narrow(0, m, m) - v), 1e-10);
}

// Random unit keys, values of +-1, a state of 32 x 32: the share of pairs of which every sign comes back.
TEST(DeltaRule, HoldsFewerRandomPairsThanSoftmaxAndMoreThanLinearAttention) {
  at::manual_seed(3);
  const auto recalled = [](const char* variant, int64_t m) {
    double right = 0;
    constexpr int kDraws = 20;
    for (int draw = 0; draw < kDraws; ++draw) {
      const at::Tensor k = of_length_one(normals(m, 32)), v = at::sign(normals(m, 32));
      const at::Tensor twice = at::cat({k, k}), values = at::cat({v, at::zeros_like(v)});
      const at::Tensor write = at::cat({at::ones({m}, at::kDouble), at::zeros({m}, at::kDouble)});
      const at::Tensor p =
          std::string(variant) == "delta" ? delta_pattern(twice, twice, write, {}).narrow(0, m, m)
          : std::string(variant) == "linear"
              ? pattern_of({"linear"}, k, twice)
              : at::cat({pattern_of({"softmax", 60.0}, k, k), at::zeros({m, m}, at::kDouble)}, 1);
      const at::Tensor out = at::matmul(p, values);
      right += at::sign(out).eq(v).all(1).to(at::kDouble).mean().item<double>() / kDraws;
    }
    return right;
  };
  EXPECT_GT(recalled("softmax", 256), 1 - 1e-9);  // a mean of ones, rounded
  EXPECT_LE(recalled("linear", 32), 0.05);
  EXPECT_LE(recalled("delta", 32), 0.30);
  EXPECT_LE(recalled("delta", 64), 0.10);
  EXPECT_GT(recalled("delta", 32), recalled("linear", 32));
}

}  // namespace
}  // namespace rankscope::test
