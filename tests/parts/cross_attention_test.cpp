// A branch that reads another stream: an encoder and a decoder, from the words the description has.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "operator/part.h"
#include "operator/split.h"
#include "parts/check.h"
#include "spec/json.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

constexpr int64_t kWidth = 6;

BranchSpec cross_branch() {
  AttentionSpec a;
  a.heads = a.kv_heads = 3;
  a.d_qk = a.d_v = 2;
  a.scale = 0.8;
  return {.name = "cross_attn",
          .norm_name = "ln_cross",
          .before = {NormKind::layer, 1e-5},
          .part = {"attention", a, {}},
          .reads = "encoder"};
}

// A pre-norm encoder over the points; a decoder over the queries that looks back, then at the encoder, then
// thinks.
TrialSpec encoder_decoder() {
  TrialSpec t = trial_of({.d = kWidth,
                          .layers = 1,
                          .modules = 1,
                          .heads = 2,
                          .rank = 3,
                          .v_rank = 3,
                          .mlp = 10,
                          .norm = NormKind::layer,
                          .place = NormPlace::pre});
  StreamSpec encoder = t.network;
  encoder.name = "encoder";
  t.network.sources = {encoder};
  BlockSpec& block = t.network.blocks[0];
  block.attention().causal = true;
  block.branches.insert(block.branches.begin() + 1, cross_branch());
  t.task = {.name = "nearest", .data = "iid", .d = kWidth, .n = 4, .queries = 3};
  check(t.network, "the test");
  return t;
}

at::Tensor layer_norm(const at::Tensor& x, const Weights& w, const std::string& name) {
  return at::layer_norm(x, {kWidth}, w.get(name + ".w"), w.get(name + ".b"), 1e-5);
}

// One head after another, one sequence: queries [Q, d] look at [K, d].
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const AttentionSpec& a, const Weights& w,
                     const std::string& name, bool causal) {
  const auto part = [&](const at::Tensor& x, const char* letter, int64_t h, int64_t d) {
    return at::linear(x, w.get(name + ".W_" + letter).narrow(0, h * d, d),
                      w.get(name + ".b_" + letter).narrow(0, h * d, d));
  };
  at::Tensor out = w.get(name + ".b_O").expand({q.size(0), kWidth}).clone();
  for (int64_t h = 0; h < a.heads; ++h) {
    at::Tensor scores = at::mm(part(q, "Q", h, a.d_qk), part(k, "K", h, a.d_qk).t()) * a.scale;
    if (causal) scores = scores.masked_fill(at::ones_like(scores).triu(1).to(at::kBool), -1e300);
    const at::Tensor z = at::mm(at::softmax(scores, -1), part(k, "V", h, a.d_v));
    out = out + at::linear(z, w.get(name + ".W_O").narrow(1, h * a.d_v, a.d_v));
  }
  return out;
}

at::Tensor mlp(const at::Tensor& x, const Weights& w) {
  return at::linear(at::relu(at::linear(x, w.get("mlp.W_in"), w.get("mlp.b_in"))), w.get("mlp.W_out"),
                    w.get("mlp.b_out"));
}

// Sums of at most 10 terms in double precision, a dozen behind one another.
TEST(CrossAttention, IsTheFormulaOfAnEncoderAndADecoder) {
  const TrialSpec t = encoder_decoder();
  at::manual_seed(4);
  const Layout layout(t.network);
  const at::Tensor flat = at::randn({layout.size()}, at::kDouble) * 0.5;
  const ParameterViews views(layout, flat, false, false);
  const TaskBatch batch = sampled(t, 3, at::kDouble);
  const at::Tensor answers = plain_forward(t.network, views, batch);
  const Weights e = views.part("encoder.blocks.0"), d = views.part("blocks.0");
  const AttentionSpec& own = t.network.blocks[0].attention();
  for (int64_t s = 0; s < 3; ++s) {
    at::Tensor x = batch.tokens[s], y = batch.queries[s];
    const at::Tensor read = layer_norm(x, e, "ln1");
    x = x + attention(read, read, t.network.sources[0].blocks[0].attention(), e, "attn", false);
    x = x + mlp(layer_norm(x, e, "ln2"), e);
    x = layer_norm(x, views.part("encoder"), "ln_final");
    const at::Tensor asked = layer_norm(y, d, "ln1");
    y = y + attention(asked, asked, own, d, "attn", true);
    y = y + attention(layer_norm(y, d, "ln_cross"), x, *cross_branch().attention(), d, "cross_attn", false);
    y = y + mlp(layer_norm(y, d, "ln2"), d);
    y = at::layer_norm(y, {kWidth}, views.get("ln_final.w"), views.get("ln_final.b"), 1e-5);
    EXPECT_LT((answers[s] - y).abs().max().item<double>(), 1e-12);
  }
}

TEST(CrossAttention, IsADescriptionThatReadsBack) {
  const ModelSpec spec = encoder_decoder().network;
  EXPECT_EQ(spec_from_json(to_json(spec), "here"), spec);
  ModelSpec nowhere = spec;
  nowhere.blocks[0].branches[1].reads = "elsewhere";
  EXPECT_THROW(check(nowhere, "here"), Error);
}

TEST(CrossAttention, TrainsInBothStreams) {
  TrialSpec t = encoder_decoder();
  t.protocol.steps = 80;
  t.protocol.batch = 64;
  const auto stack = make_stack({t}, {fresh_state(t)}, {.device = "cpu", .threads = 2});
  const std::vector<float> before = stack->state(0).parameters;
  const double error = stack->evaluate().front().mse;
  std::vector<double> losses(1);
  stack->advance(80, losses);
  EXPECT_LT(stack->evaluate().front().mse, error);
  const std::vector<float> after = stack->state(0).parameters;
  const Layout layout(t.network);
  for (const char* name :
       {"encoder.blocks.0.attn.W_Q", "encoder.blocks.0.mlp.W_in", "blocks.0.cross_attn.W_K"}) {
    const int64_t at = layout.offset_of(name);
    ASSERT_GE(at, 0) << name;
    EXPECT_NE(before[size_t(at)], after[size_t(at)]) << name;
  }
}

// Operator, paths and split arithmetic speak of one stream, and say so.
TEST(CrossAttention, IsRefusedByNameWhereOneStreamIsMeant) {
  const BlockSpec block{.branches = {cross_branch()}};
  const BlockPlan plan(block, kWidth);
  const Batch batch;
  at::Tensor written;
  const auto said = [](auto call) {
    try {
      call();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(
      said([&] {
        freeze_program(at::zeros({4, kWidth}), plan.steps[1], plan.programs[0], Weights(), batch, written);
      }).find("reads the stream encoder"),
      std::string::npos);
  Weights norm;
  norm.set("ln_cross.w", at::ones({kWidth}, at::kDouble));
  norm.set("ln_cross.b", at::zeros({kWidth}, at::kDouble));
  SplitTokens tokens(at::randn({4, kWidth}, at::kDouble));
  EXPECT_NE(said([&] { tokens.advance(block, norm, batch); }).find("reads the stream encoder"),
            std::string::npos);
}

}  // namespace
}  // namespace rankscope
