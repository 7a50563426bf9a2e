// Gated DeltaNet against its formulas, number by number and token by token.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "parts/check.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::tiny_spec;

struct Shape {
  int64_t heads, key_heads, d_qk, d_v, kernel;
};

ModelSpec network(const Shape& shape) {
  ModelSpec spec = tiny_spec(NormPlace::pre, 1);
  BranchSpec& b = *spec.blocks[0].attention_branch();
  b.part.name = "gated_delta_attention";
  if (shape.kernel != 4) b.part.options["kernel"] = static_cast<double>(shape.kernel);
  AttentionSpec& a = *b.attention();
  a.variant = "delta:epsilon=1e-06";
  a.heads = shape.heads;
  a.kv_heads = shape.key_heads;
  a.d_qk = shape.d_qk;
  a.d_v = shape.d_v;
  spec.embedding.positions = 256;
  check(spec, "the test");
  return spec;
}

class Kept : public BlockObserver {
 public:
  explicit Kept(bool patterns) : patterns_(patterns) {}
  bool wants(std::string_view site) const override { return patterns_ && site == "attn.hook_mixer"; }
  void see(std::string_view site, const at::Tensor& t, const TilePlace&) override {
    if (site == "ln1.hook_normalized") read = t.clone();
    if (site == "hook_attn_out") out = t.clone();
  }
  at::Tensor read, out;

 private:
  bool patterns_;
};

struct Ready {
  explicit Ready(const ModelSpec& s, const std::vector<int64_t>& lengths, const char* dtype = "float64")
      : spec(s),
        source(random_source(spec, 5, dtype, "cpu")),
        weights(source->load("blocks.0")),
        batch(make_batches(random_samples(lengths, 50), spec, 8).front()) {}
  Kept run(bool patterns) const {
    Kept kept(patterns);
    const at::Tensor x = embed(batch, spec, source->load("embed"), *source);
    run_block(x, spec.blocks[0], weights, batch, kept);
    return kept;
  }
  ModelSpec spec;
  std::unique_ptr<WeightSource> source;
  Weights weights;
  Batch batch;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// What the part writes for the tokens x [T, d] of one sample, in plain loops.
at::Tensor by_hand(const at::Tensor& x, const Ready& m) {
  const AttentionSpec& a = m.spec.blocks[0].attention();
  const int64_t T = x.size(0);
  const auto mapped = [&](const std::string& letter) {
    const at::Tensor W = m.weights.get("attn.W_" + letter);
    return at::linear(x, W, m.weights.get_or_none("attn.b_" + letter));
  };
  const auto convolved = [&](const std::string& letter) {
    const at::Tensor from = mapped(letter), W = m.weights.get("attn.conv_" + letter);
    const int64_t taps = W.size(1);
    at::Tensor out = at::zeros_like(from);
    for (int64_t t = 0; t < T; ++t)
      for (int64_t j = 0; j < taps && j <= t; ++j) out[t] += from[t - j] * W.select(1, taps - 1 - j);
    return out * at::sigmoid(out);
  };
  const at::Tensor q = convolved("Q"), k = convolved("K"), v = convolved("V"), z = mapped("Z");
  const at::Tensor write = mapped("write"), keep = mapped("keep"), rate = m.weights.get("attn.keep_rate"),
                   bias = m.weights.get("attn.keep_bias"), gain = m.weights.get("attn.z_norm.w");
  at::Tensor heads = at::zeros({T, a.heads, a.d_v}, x.options());
  for (int64_t h = 0; h < a.heads; ++h) {
    const int64_t g = h / (a.heads / a.kv_heads);
    at::Tensor state = at::zeros({a.d_qk, a.d_v}, x.options());
    for (int64_t t = 0; t < T; ++t) {
      const auto of_length_one = [&](const at::Tensor& all) {
        const at::Tensor one = all[t].narrow(0, g * a.d_qk, a.d_qk);
        return one / std::sqrt((one * one).sum().item<double>() + 1e-6);
      };
      const at::Tensor query = of_length_one(q) * a.scale, key = of_length_one(k);
      const double fall = std::exp(rate[h].item<double>()) *
                          std::log1p(std::exp(keep[t][h].item<double>() + bias[h].item<double>()));
      state = state * std::exp(-fall);
      const at::Tensor held = at::mv(state.t(), key);
      state = state +
              at::outer(key, (v[t].narrow(0, h * a.d_v, a.d_v) - held) * sigmoid(write[t][h].item<double>()));
      const at::Tensor read = at::mv(state.t(), query);
      const double size = std::sqrt((read * read).mean().item<double>() + 1e-6);  // as its norm before has
      const at::Tensor gate = z[t].narrow(0, h * a.d_v, a.d_v);
      heads[t][h] = read / size * gain * gate * at::sigmoid(gate);
    }
  }
  return at::linear(heads.flatten(1), m.weights.get("attn.W_O"), m.weights.get("attn.b_O"));
}

// Samples of 150 tokens go over the 64 that the fused form takes at once. Per token some hundred products of
// order one; a delta rule does not let errors grow, since what it keeps is at most one.
TEST(GatedDeltaAttention, IsItsFormulaByPatternsAndWithoutThem) {
  for (const Shape& shape : {Shape{4, 2, 6, 5, 4}, {4, 1, 3, 6, 2}, {1, 1, 5, 4, 1}, {6, 3, 2, 2, 9}})
    for (const std::vector<int64_t>& lengths :
         {std::vector<int64_t>{1}, std::vector<int64_t>{3, 7, 3}, std::vector<int64_t>{150}}) {
      const Ready m(network(shape), lengths);
      for (const bool patterns : {false, true}) {
        const Kept kept = m.run(patterns);
        for (int64_t s = 0; s < m.batch.count(); ++s) {
          const int64_t begin = m.batch.offsets[static_cast<size_t>(s)], T = m.batch.length(s);
          const at::Tensor theirs = by_hand(kept.read.narrow(0, begin, T), m);
          const at::Tensor ours = kept.out.narrow(0, begin, T);
          EXPECT_LT((ours - theirs).abs().max().item<double>(), 1e-11 * theirs.abs().max().item<double>())
              << shape.heads << " heads, " << T << " tokens, patterns " << patterns;
        }
      }
    }
}

// A rate of e^6 keeps e^-280 of the state, which no float is: the logarithm of what is kept must not become
// infinite.
TEST(GatedDeltaAttention, ForgettingEverythingIsANumber) {
  Ready m(network({4, 2, 6, 5, 4}), {70}, "float32");
  m.weights.set("attn.keep_rate", at::full({4}, 6.0, at::kFloat));
  const Kept by_patterns = m.run(true), without = m.run(false);
  EXPECT_TRUE(at::isfinite(by_patterns.out).all().item<bool>());
  // Sums of some ten products in single precision.
  EXPECT_LT((by_patterns.out - without.out).abs().max().item<double>(),
            1e-5 * by_patterns.out.abs().max().item<double>());
}

TEST(GatedDeltaAttention, RefusesWordsItCannotFollow) {
  const auto refused = [](auto change) {
    ModelSpec spec = network({4, 2, 6, 5, 4});
    change(*spec.blocks[0].attention_branch());
    EXPECT_THROW(check(spec, "the test"), Error);
  };
  refused([](BranchSpec& b) { b.attention()->variant = "softmax"; });
  refused([](BranchSpec& b) { b.attention()->sinks = true; });
  refused([](BranchSpec& b) { b.attention()->qk_norm = {NormKind::rms, 1e-6}; });
  refused([](BranchSpec& b) { b.attention()->kv_heads = 3; });
  refused([](BranchSpec& b) { b.part.options["kernel"] = 0; });
  refused([](BranchSpec& b) { b.part.options["kernel"] = 257; });
}

}  // namespace
}  // namespace rankscope
