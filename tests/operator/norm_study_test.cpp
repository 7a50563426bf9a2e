// Does the norm play no role? Attention with a norm behind it and nothing else, the same weights in every
// layer, which holds two tokens apart for ever: a counter-example in the manner of Wu et al. (2405.18781).
//
// With x = cos(a) u +- sin(a) w for the two tokens (u, w centred, orthonormal, times sqrt 3), scores t <x, y>
// and a value map that multiplies w by s, a layer does tan a' = s tanh(t sin^2 a) tan a, and the norm keeps
// the length. Where s tanh(t sin^2 a) > 1 the angle grows to a right one, below that it falls by the cube.
#include <gtest/gtest.h>

#include "operator/dense_reference.h"
#include "operator/split.h"

namespace rankscope {
namespace {

using namespace test;

constexpr double kScore = 2.0, kStretch = 1.5;

struct TwoTokens {
  at::Tensor u = at::tensor({1.0, -1.0, 0.0}, at::kDouble) / std::sqrt(2.0);
  at::Tensor w = at::tensor({1.0, 1.0, -2.0}, at::kDouble) / std::sqrt(6.0);
  BlockSpec block;
  Weights weights;
  Batch batch;

  TwoTokens() {
    AttentionSpec a;
    a.d_qk = a.d_v = 3;
    a.scale = kScore / 3;  // tokens have length sqrt 3
    a.bias = a.output_bias = false;
    block = classic_block(NormPlace::post, {NormKind::layer, 0.0}, a, "");
    block.branches.front().skip = false;
    const at::Tensor one = at::eye(3, at::kDouble);
    for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_O"}) weights.set(name, one);
    weights.set("attn.W_V", one + (kStretch - 1) * at::outer(w, w));
    weights.set("ln1.w", at::ones({3}, at::kDouble));
    weights.set("ln1.b", at::zeros({3}, at::kDouble));
    ModelSpec spec = tiny_spec();
    batch = make_batches(random_samples({2}, 50), spec, 1).front();
  }
  at::Tensor tokens(double angle) const {
    return std::sqrt(3.0) *
           at::stack({std::cos(angle) * u + std::sin(angle) * w, std::cos(angle) * u - std::sin(angle) * w});
  }
  double angle(const at::Tensor& x) const {
    return std::atan2(x[0].dot(w).item<double>(), x[0].dot(u).item<double>());
  }
};

TEST(NormStudy, OneLayerDoesWhatTheFormulaSays) {
  const TwoTokens m;
  for (const double a : {0.2, 0.7, 1.2}) {
    SplitTokens x(m.tokens(a));
    x.advance(m.block, m.weights, m.batch);
    const double sine = std::sin(a);
    EXPECT_NEAR(std::tan(m.angle(x.whole())), kStretch * std::tanh(kScore * sine * sine) * std::tan(a),
                1e-12);
  }
}

TEST(NormStudy, ANormHoldsTokensApartForEver) {
  const TwoTokens m;
  SplitTokens apart(m.tokens(1.2)), together(m.tokens(0.5));
  ASSERT_GT(kStretch * std::tanh(kScore * std::pow(std::sin(1.2), 2)), 1.0);
  ASSERT_LT(kStretch * std::tanh(kScore * std::pow(std::sin(0.5), 2)), 1.0);
  for (int l = 0; l < 100; ++l) apart.advance(m.block, m.weights, m.batch);
  for (int l = 0; l < 6; ++l) together.advance(m.block, m.weights, m.batch);
  EXPECT_GT(std::exp(apart.residual().log_fro_rel), 0.99);      // a right angle: nothing in common
  EXPECT_LT(together.residual().log_fro_rel, std::log(1e-30));  // the cube
}

TEST(NormStudy, WithoutTheNormTheSameWeightsRunAway) {
  TwoTokens m;
  m.block.branches.front().behind = {};
  SplitTokens x(m.tokens(1.2));
  const double before = x.residual().log_fro;
  for (int l = 0; l < 100; ++l) x.advance(m.block, m.weights, m.batch);
  // The residual grows by at least its first factor in every layer; the norm is what kept it where it was.
  EXPECT_GT(x.residual().log_fro - before,
            100 * std::log(kStretch * std::tanh(kScore * std::pow(std::sin(1.2), 2))));
}

}  // namespace
}  // namespace rankscope
