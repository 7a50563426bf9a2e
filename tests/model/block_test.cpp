// The block against its formula written out plainly, and the packed batch against each sample alone.
#include "model/block.h"

#include <gtest/gtest.h>

#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "spec/edit.h"
#include "support/tiny.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::tiny_spec;

class Keep : public BlockObserver {
 public:
  void see(std::string_view site, const at::Tensor& tile, const TilePlace&) override {
    if (site == "attn.hook_pattern") tiles.push_back(tile.clone());
  }
  std::vector<at::Tensor> tiles;
};

at::Tensor norm(const at::Tensor& x, const NormSpec& norm, const Weights& w, const std::string& name) {
  if (!norm.there() || norm.off) return x;
  const at::Tensor c = x - x.mean(-1, true);
  const at::Tensor y = c / (c.square().mean(-1, true) + norm.epsilon).sqrt();
  return y * w.get(name + ".w") + w.get(name + ".b");
}

// One sample [T, d], head by head, as the papers write it.
at::Tensor plain_attention(const at::Tensor& read, const AttentionSpec& a, const Weights& w) {
  const int64_t T = read.size(0);
  at::Tensor out = w.get("attn.b_O").expand({T, read.size(1)}).clone();
  for (int64_t h = 0; h < a.heads; ++h) {
    if (std::find(a.heads_off.begin(), a.heads_off.end(), h) != a.heads_off.end()) continue;
    const int64_t g = h / (a.heads / a.kv_heads);
    const auto rows = [&](const char* W, const char* bias, int64_t head, int64_t d) {
      return read.matmul(w.get(W).narrow(0, head * d, d).t()) + w.get(bias).narrow(0, head * d, d);
    };
    at::Tensor scores =
        rows("attn.W_Q", "attn.b_Q", h, a.d_qk).matmul(rows("attn.W_K", "attn.b_K", g, a.d_qk).t()) * a.scale;
    for (int64_t i = 0; i < T; ++i)
      for (int64_t j = 0; j < T; ++j)
        if ((a.causal && j > i) || (a.window > 0 && i - j >= a.window)) scores[i][j] = -1e300;
    const at::Tensor z = at::softmax(scores, -1).matmul(rows("attn.W_V", "attn.b_V", g, a.d_v));
    out = out + z.matmul(w.get("attn.W_O").narrow(1, h * a.d_v, a.d_v).t());
  }
  return out;
}

at::Tensor plain_mlp(const at::Tensor& read, const Weights& w) {
  return at::linear(at::gelu(at::linear(read, w.get("mlp.W_in"), w.get("mlp.b_in"))), w.get("mlp.W_out"),
                    w.get("mlp.b_out"));
}

// A branch with all it may have: x + scale inside(part(before(x))), normed behind.
at::Tensor plain_branch(const at::Tensor& read, const at::Tensor& added, const BranchSpec& b, bool skip,
                        const Weights& w) {
  const at::Tensor in = norm(read, b.before, w, b.norm_name);
  const at::Tensor out = b.attention() ? plain_attention(in, *b.attention(), w) : plain_mlp(in, w);
  const at::Tensor written = b.scale * norm(out, b.inside, w, b.norm_name + "_post");
  return norm(skip ? added + written : written, b.behind, w, b.norm_name);
}

at::Tensor plain_block(const at::Tensor& x, const BlockSpec& block, const Weights& w) {
  at::Tensor stream = x;
  for (size_t i = 0; i < block.branches.size(); ++i) {
    const bool beside = block.parallel && i > 0;
    stream =
        plain_branch(beside ? x : stream, stream, block.branches[i], beside || block.branches[i].skip, w);
  }
  return stream;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

class Block : public testing::TestWithParam<std::tuple<NormPlace, std::string>> {};

TEST_P(Block, EqualsItsFormulaWithPartsTakenOut) {
  const auto [place, off] = GetParam();
  ModelSpec spec = tiny_spec(place);
  for (BlockSpec& b : spec.blocks) b.attention().kv_heads = 2;
  if (!off.empty()) spec = without(spec, off);
  const auto source = random_source(spec, 11, "float64", "cpu");
  const Weights w = source->load("blocks.1");
  const std::vector<Batch> batches = make_batches(random_samples({9, 1, 4, 9}, 50), spec, 8);
  const at::Tensor x = embed(batches[0], spec, source->load("embed"), *source);
  BlockObserver nobody;
  const at::Tensor y = run_block(x, spec.blocks[1], w, batches[0], nobody);
  for (int64_t s = 0; s < batches[0].count(); ++s) {
    const int64_t first = batches[0].offsets[static_cast<size_t>(s)], T = batches[0].length(s);
    EXPECT_LT(distance(y.narrow(0, first, T), plain_block(x.narrow(0, first, T), spec.blocks[1], w)), 1e-12)
        << s;
  }
}

INSTANTIATE_TEST_SUITE_P(Surgery, Block,
                         testing::Combine(testing::Values(NormPlace::pre, NormPlace::post),
                                          testing::Values("", "skip", "attention-skip", "mlp-skip", "mlp",
                                                          "norm", "skip+mlp", "skip+mlp+norm", "head:L1H2")));

// The words that no model on disk uses yet.
TEST(Block, RunsBranchesSideBySideScaledAndNormedInside) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post})
    for (const bool parallel : {false, true}) {
      ModelSpec spec = tiny_spec(place);
      for (BlockSpec& b : spec.blocks) {
        b.parallel = parallel;
        if (parallel) b.branches[0].behind = b.branches[1].behind = {};
        b.branches[0].inside = {NormKind::layer, 1e-6};
        b.branches[0].scale = 0.3;
        b.branches[1].scale = -1.5;
      }
      const auto source = random_source(spec, 11, "float64", "cpu");
      const Weights w = source->load("blocks.1");
      const Batch batch = make_batches(random_samples({9}, 50), spec, 8).front();
      const at::Tensor x = embed(batch, spec, source->load("embed"), *source);
      BlockObserver nobody;
      EXPECT_LT(distance(run_block(x, spec.blocks[1], w, batch, nobody), plain_block(x, spec.blocks[1], w)),
                1e-12);
    }
}

TEST(Block, TilesOfALongSampleEqualTheWholePattern) {
  ModelSpec spec = tiny_spec(NormPlace::pre, 1);
  spec.embedding.positions = 2000;
  const auto source = random_source(spec, 11, "float64", "cpu");
  const Weights w = source->load("blocks.0");
  const std::vector<Batch> batches = make_batches(random_samples({kWholePattern + 201}, 50), spec, 8);
  const at::Tensor x = embed(batches[0], spec, source->load("embed"), *source);
  Keep keep;
  const at::Tensor y = run_block(x, spec.blocks[0], w, batches[0], keep);
  ASSERT_GE(keep.tiles.size(), 1u);
  const at::Tensor pattern = at::cat(keep.tiles, 2);
  EXPECT_EQ(pattern.size(2), kWholePattern + 201);
  EXPECT_LT((pattern.sum(-1) - 1).abs().max().item<double>(), 1e-13);
  EXPECT_EQ(pattern.triu(1).abs().max().item<double>(), 0.0);
  EXPECT_LT(distance(y, plain_block(x, spec.blocks[0], w)), 1e-12);
}

TEST(Block, WindowHidesWhatIsTooFarBack) {
  ModelSpec spec = tiny_spec(NormPlace::pre, 1);
  spec.blocks[0].attention().window = 3;
  const auto source = random_source(spec, 11, "float64", "cpu");
  const Weights w = source->load("blocks.0");
  const std::vector<Batch> batches = make_batches(random_samples({8}, 50), spec, 8);
  const at::Tensor x = embed(batches[0], spec, source->load("embed"), *source);
  BlockObserver nobody;
  EXPECT_LT(distance(run_block(x, spec.blocks[0], w, batches[0], nobody), plain_block(x, spec.blocks[0], w)),
            1e-12);
}

// Samples of several lengths, GQA: by what the variant carries where nobody looks, by patterns where somebody
// does.
TEST(Block, GivesTheSameWhetherPatternsAreLookedAtOrNot) {
  class Looks : public BlockObserver {
    bool wants(std::string_view site) const override {
      return site == "attn.hook_pattern" || site == "attn.hook_mixer";
    }
  } looks;
  for (const char* variant :
       {"linear", "decay:slowest=4,fastest=1", "fastmax:p=2", "fastmax:p=1,norm=own_mean"})
    for (const bool causal : {false, true}) {
      ModelSpec spec = tiny_spec(NormPlace::pre, 1);
      spec.embedding.positions = 200;
      AttentionSpec& a = spec.blocks[0].attention();
      a.variant = variant;
      a.kv_heads = 2;
      a.causal = causal && a.variant.find("own_mean") == std::string::npos;
      const auto source = random_source(spec, 11, "float64", "cpu");
      const Weights w = source->load("blocks.0");
      const Batch batch = make_batches(random_samples({9, 70, 70, 1, 130}, 50), spec, 8).front();
      const at::Tensor x = embed(batch, spec, source->load("embed"), *source);
      BlockObserver nobody;
      EXPECT_LT(distance(run_block(x, spec.blocks[0], w, batch, nobody),
                         run_block(x, spec.blocks[0], w, batch, looks)),
                1e-11)
          << variant << causal;
    }
}

// A state knows no places out of order: then patterns say what there is.
TEST(Block, PositionsOutOfOrderAreTakenByTheirDistances) {
  ModelSpec spec = tiny_spec(NormPlace::pre, 1);
  spec.blocks[0].attention().variant = "decay:slowest=2,fastest=1";
  const auto source = random_source(spec, 11, "float64", "cpu");
  const Weights w = source->load("blocks.0");
  std::vector<Sample> samples = random_samples({4}, 50);
  samples[0].positions = {3, 0, 2, 1};
  const Batch batch = make_batches(samples, spec, 8).front();
  const at::Tensor x = embed(batch, spec, source->load("embed"), *source);
  class Looks : public BlockObserver {
    bool wants(std::string_view) const override { return true; }
  } looks;
  BlockObserver nobody;
  EXPECT_EQ(
      distance(run_block(x, spec.blocks[0], w, batch, nobody), run_block(x, spec.blocks[0], w, batch, looks)),
      0.0);
}

TEST(Norms, UnitAndRmsAreWhatTheySay) {
  Weights w;
  w.set("ln1.w", at::full({4}, 2.0, at::kDouble));
  const at::Tensor x = at::tensor({3.0, 0.0, 4.0, 0.0}, at::kDouble).view({1, 4});
  EXPECT_NEAR(apply_norm(x, {NormKind::unit, 0}, w, "ln1")[0][2].item<double>(), 2 * 0.8, 1e-15);
  EXPECT_NEAR(apply_norm(x, {NormKind::rms, 0}, w, "ln1")[0][2].item<double>(), 2 * 4 / 2.5, 1e-15);
  EXPECT_TRUE(at::equal(apply_norm(x, {NormKind::none, 0}, w, "ln1"), x));
}

}  // namespace
}  // namespace rankscope
