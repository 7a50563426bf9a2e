#include <gtest/gtest.h>

#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope::testing {
namespace {

struct Case {
  BlockSpec block;
  Weights weights;
  int64_t d = 0;
};

Case random_case(int64_t d, int64_t heads, int64_t kv, int64_t d_qk, int64_t d_v, NormPlace place) {
  Case c;
  c.d = d;
  c.block = classic_block(place, {NormKind::layer}, {}, "");
  AttentionSpec& a = c.block.attention();
  a.heads = heads, a.kv_heads = kv, a.d_qk = d_qk, a.d_v = d_v;
  c.weights.set("attn.W_Q", at::randn({heads * d_qk, d}, at::kDouble));
  c.weights.set("attn.W_K", at::randn({kv * d_qk, d}, at::kDouble));
  c.weights.set("attn.W_V", at::randn({kv * d_v, d}, at::kDouble));
  c.weights.set("attn.W_O", at::randn({d, heads * d_v}, at::kDouble));
  c.weights.set("ln1.w", at::rand({d}, at::kDouble) + 0.5);
  return c;
}

Collected see_weights(const Case& c) {
  Seeing seeing(lens_named("circuits"));
  seeing.weights({c.block, c.weights});
  return seeing.finish();
}

// Where the norm stands whose gain is in the weights: only the one that acts before the head is its own.
enum class Gain { before, behind, taken_out };

TEST(Circuits, MatchTheFormedMapsWithGroupedHeadsAndTheGainsThatAct) {
  at::manual_seed(1);
  for (const Gain folded : {Gain::before, Gain::behind, Gain::taken_out})
    for (const int64_t kv : {4, 2, 1}) {
      Case c = random_case(15, 4, kv, 3, 5, folded == Gain::behind ? NormPlace::post : NormPlace::pre);
      c.block.branches.front().before.off = folded == Gain::taken_out;
      const Collected got = see_weights(c);
      const at::Tensor gain =
          folded == Gain::before ? at::diag(c.weights.get("ln1.w")) : at::eye(c.d, at::kDouble);
      for (int h = 0; h < 4; ++h) {
        const int64_t g = h / (4 / kv);
        const at::Tensor q = c.weights.get("attn.W_Q").narrow(0, h * 3, 3),
                         k = c.weights.get("attn.W_K").narrow(0, g * 3, 3);
        const at::Tensor qk = gain.mm(q.t()).mm(k).mm(gain);
        const at::Tensor ov = c.weights.get("attn.W_O")
                                  .narrow(1, h * 5, 5)
                                  .mm(c.weights.get("attn.W_V").narrow(0, g * 5, 5))
                                  .mm(gain);
        const double trace = qk.trace().item<double>();
        const auto near = [&](const char* metric, double expected) {
          EXPECT_NEAR(got.total(metric, h).value, expected, 1e-11 * expected) << metric;
        };
        near("qk_pr", trace * trace / qk.square().sum().item<double>());
        near("qk_effective_rank", reference::effective_rank(reference::sigma(qk)));
        near("ov_effective_rank", reference::effective_rank(reference::sigma(ov)));
        near("qk_stable_rank", reference::stable_rank(reference::sigma(qk)));
        near("ov_stable_rank", reference::stable_rank(reference::sigma(ov)));
        EXPECT_EQ(got.total("qk_pr", h).n, 1);
      }
    }
}

TEST(Circuits, QueriesEqualToOrthonormalKeysHaveEveryRankEqualToTheHeadWidth) {
  Case c = random_case(8, 1, 1, 4, 4, NormPlace::post);
  const at::Tensor w = at::eye(8, at::kDouble).narrow(0, 0, 4).contiguous();
  for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_V"}) c.weights.set(name, w);
  c.weights.set("attn.W_O", w.t());
  const Collected got = see_weights(c);
  for (const char* metric :
       {"qk_pr", "qk_effective_rank", "qk_stable_rank", "ov_effective_rank", "ov_stable_rank"})
    EXPECT_NEAR(got.total(metric, 0).value, 4, 1e-13) << metric;
}

TEST(Circuits, NoRankExceedsTheHeadWidth) {
  at::manual_seed(2);
  const Collected got = see_weights(random_case(12, 3, 3, 2, 4, NormPlace::pre));
  for (const auto& [key, value] : got.values)
    EXPECT_LE(value.value, (std::get<0>(key).starts_with("qk") ? 2 : 4) + 1e-12) << std::get<0>(key);
}

TEST(Circuits, ZeroWeightsHaveRankZero) {
  Case c = random_case(6, 1, 1, 2, 2, NormPlace::pre);
  c.weights.set("attn.W_Q", at::zeros({2, 6}, at::kDouble));
  const Collected got = see_weights(c);
  EXPECT_EQ(got.total("qk_pr", 0).value, 0);
  EXPECT_EQ(got.total("qk_effective_rank", 0).value, 0);
}

TEST(Circuits, HeadsWiderThanTheModelAreFine) {
  at::manual_seed(3);
  const Case c = random_case(4, 2, 2, 9, 7, NormPlace::pre);
  EXPECT_LE(see_weights(c).total("qk_effective_rank", 1).value, 4);
}

TEST(Circuits, Float32WeightsAgreeWithTheSameInFloat64) {
  at::manual_seed(4);
  Case wide = random_case(20, 2, 1, 4, 4, NormPlace::pre),
       narrow = random_case(20, 2, 1, 4, 4, NormPlace::pre);
  for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O", "ln1.w"}) {
    narrow.weights.set(name, wide.weights.get(name).to(at::kFloat));
    wide.weights.set(name, narrow.weights.get(name).to(at::kDouble));
  }
  const Collected a = see_weights(wide), b = see_weights(narrow);
  for (const auto& [key, value] : a.values)  // the gain is folded in at the weights' own precision
    EXPECT_NEAR(b.values.at(key).value, value.value, 8 * 0x1p-23 * std::max(1.0, value.value))
        << std::get<0>(key);
}

// Keys and values through a latent: the maps are the products, the norm between them with its gains alone.
TEST(Circuits, OfALatentAreTheProductsThroughIt) {
  at::manual_seed(4);
  Case c = random_case(15, 2, 2, 5, 4, NormPlace::post);
  c.block.attention_branch()->part.name = "latent_attention";
  const at::Tensor down = at::randn({3, 15}, at::kDouble), gain = at::rand({3}, at::kDouble) + 0.5,
                   own = at::randn({2 * 3, 3}, at::kDouble), shared = at::randn({2, 15}, at::kDouble),
                   values = at::randn({2 * 4, 3}, at::kDouble);
  c.weights.set("attn.W_KV_latent", down);
  c.weights.set("attn.kv_latent_norm.w", gain);
  c.weights.set("attn.W_K", own);
  c.weights.set("attn.W_K_rotated", shared);
  c.weights.set("attn.W_V", values);
  const Collected got = see_weights(c);
  for (int h = 0; h < 2; ++h) {
    const at::Tensor q = c.weights.get("attn.W_Q").narrow(0, h * 5, 5);
    const at::Tensor k = at::cat({shared, at::matmul(own.narrow(0, h * 3, 3) * gain, down)});
    const at::Tensor v = at::matmul(values.narrow(0, h * 4, 4) * gain, down);
    const at::Tensor o = c.weights.get("attn.W_O").narrow(1, h * 4, 4);
    // Singular values of 15 x 15 products in double precision.
    EXPECT_NEAR(got.total("qk_stable_rank", h).value,
                reference::stable_rank(reference::sigma(at::matmul(q.t(), k))), 1e-9);
    EXPECT_NEAR(got.total("ov_stable_rank", h).value,
                reference::stable_rank(reference::sigma(at::matmul(o, v))), 1e-9);
  }
}

// Gains of a norm on queries and keys belong to the map, too.
TEST(Circuits, FoldTheGainsOfNormedQueriesAndKeys) {
  at::manual_seed(5);
  for (const NormSpan span : {NormSpan::head, NormSpan::own_head, NormSpan::all}) {
    Case c = random_case(15, 4, 2, 3, 5, NormPlace::post);
    AttentionSpec& a = c.block.attention();
    a.qk_norm = {NormKind::rms};
    a.qk_norm_span = span;
    const bool shared = span == NormSpan::head;
    const at::Tensor gq = at::rand({shared ? 3 : 12}, at::kDouble) + 0.5,
                     gk = at::rand({shared ? 3 : 6}, at::kDouble) + 0.5;
    c.weights.set("attn.q_norm.w", gq);
    c.weights.set("attn.k_norm.w", gk);
    const Collected got = see_weights(c);
    for (int h = 0; h < 4; ++h) {
      const int64_t g = h / 2;
      const at::Tensor q = at::diag(shared ? gq : gq.narrow(0, h * 3, 3))
                               .matmul(c.weights.get("attn.W_Q").narrow(0, h * 3, 3));
      const at::Tensor k = at::diag(shared ? gk : gk.narrow(0, g * 3, 3))
                               .matmul(c.weights.get("attn.W_K").narrow(0, g * 3, 3));
      EXPECT_NEAR(got.total("qk_stable_rank", h).value,
                  reference::stable_rank(reference::sigma(at::matmul(q.t(), k))), 1e-9);
    }
  }
}

}  // namespace
}  // namespace rankscope::testing
