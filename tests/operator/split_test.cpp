// The split arithmetic against plain double precision where that still resolves, and against the cubic law
// where nothing else does.
#include "operator/split.h"

#include <gtest/gtest.h>

#include "operator/dense_reference.h"
#include "support/reference.h"

namespace rankscope {
namespace {

using namespace test;

at::Tensor start(const ModelSpec& spec, WeightSource& source, const Batch& batch) {
  return embed(batch, spec, source.load("embed"), source);
}

/// Whether the split arithmetic has a form for every part: the choice of experts and attention that keeps a
/// state have none, and rows of a pattern must sum to one.
bool is_split(const ModelSpec& spec) {
  for (const BlockSpec& block : spec.blocks)
    for (const BranchSpec& b : block.branches)
      if (b.part.name == "experts" || b.part.name == "gated_delta_attention" ||
          (b.attention() != nullptr && b.attention()->sinks))
        return false;
  return true;
}

class EveryFixtureSplit : public testing::TestWithParam<std::string> {};

TEST_P(EveryFixtureSplit, AgreesWithFloat64AfterEveryBlock) {
  const Loaded m = load(GetParam(), "float64");
  if (has_several_streams(GetParam())) GTEST_SKIP() << "networks of several streams are refused";
  const std::vector<const char*> parts =
      has_one_skip(m.spec) ? std::vector{"", "skip", "skip+mlp", "norm"}
                           : std::vector{"", "attention-skip", "attention-skip+mlp", "skip", "norm"};
  for (const char* off : parts) {
    const ModelSpec spec = *off == '\0' ? m.spec : without(m.spec, off);
    std::vector<Sample> samples(1);
    if (spec.embedding.vocabulary > 0)
      samples = random_samples({7}, spec.embedding.vocabulary);
    else
      samples[0].pixels.assign(
          m.batch.pixels.begin(),
          m.batch.pixels.begin() + static_cast<std::ptrdiff_t>(m.batch.pixels.size() / 2));
    const Batch batch = make_batches(samples, spec, 1).front();
    at::Tensor x = start(spec, *m.source, batch);
    SplitTokens split(x);
    BlockObserver nobody;
    if (!is_split(spec)) {  // refused, and not followed wrongly
      const auto follow = [&] {
        for (const BlockSpec& block : spec.blocks)
          split.advance(block, m.source->load("blocks." + std::to_string(block.weights)), batch);
      };
      EXPECT_THROW(follow(), Error) << off;
      continue;
    }
    for (const BlockSpec& block : spec.blocks) {
      const Weights w = m.source->load("blocks." + std::to_string(block.weights));
      x = run_block(x, block, w, batch, nobody);
      split.advance(block, w, batch);
      EXPECT_LE(distance(split.whole(), x), 1e-10) << off;
      // Plain double loses eps times the size of the tokens.
      const double plain = reference::composite(reference::centered(x));
      EXPECT_NEAR(std::exp(split.residual().log_l1inf), plain,
                  1e-10 * plain + 1e-13 * reference::composite(x))
          << off;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Split, EveryFixtureSplit, testing::ValuesIn(model_fixtures()), fixture_name);

TEST(Split, FollowsAUnitNormWithItsGain) {
  const Tiny m(NormPlace::post, "", [](ModelSpec& s) {
    for (BlockSpec& block : s.blocks)
      for (BranchSpec& b : block.branches) b.behind.kind = NormKind::unit;
  });
  at::Tensor x = start(m.spec, *m.source, m.batch);
  SplitTokens split(x);
  BlockObserver nobody;
  for (const BlockSpec& block : m.spec.blocks) {
    const Weights w = m.source->load("blocks." + std::to_string(block.weights));
    x = run_block(x, block, w, m.batch, nobody);
    split.advance(block, w, m.batch);
    EXPECT_LE(distance(split.whole(), x), 1e-12);
  }
}

// Attention alone, scaled down from BERT-base with what decides kept: scores of the same size at
// initialisation.
ModelSpec pure_attention(int64_t depth) {
  ModelSpec s = tiny_spec(NormPlace::post, depth);
  s.width = s.embedding.width = 192;
  s.init.std = 0.04;  // BERT's 0.02 times sqrt(768 / 192)
  for (BlockSpec& b : s.blocks) {
    b.attention().heads = b.attention().kv_heads = 12;
    b.attention().d_qk = b.attention().d_v = 16;
    b.attention().scale = 0.25;
    b.branches.resize(1);
    b.branches[0].skip = false;
  }
  return s;
}

std::vector<double> log_residuals(const ModelSpec& spec, uint64_t seed) {
  const auto source = random_source(spec, seed, "float64", "cpu");
  const Batch batch = make_batches(random_samples({48}, 50, seed), spec, 1).front();
  at::manual_seed(static_cast<int64_t>(seed));
  SplitTokens split(at::randn({48, spec.width}, at::kDouble));
  std::vector<double> out{split.residual().log_l1inf_rel};
  for (const BlockSpec& block : spec.blocks) {
    split.advance(block, source->load("blocks." + std::to_string(block.weights)), batch);
    out.push_back(split.residual().log_l1inf_rel);
  }
  return out;
}

TEST(Split, FollowsTheCubicLawBelowTheSmallestDouble) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const std::vector<double> r = log_residuals(pure_attention(8), seed);
    for (size_t l = 2; l + 1 < r.size(); ++l)
      EXPECT_NEAR((r[l + 1] - r[l]) / (r[l] - r[l - 1]), 3.0, 0.15) << "seed " << seed << ", layer " << l;
    EXPECT_LT(r[6], std::log(1e-160));
    EXPECT_LT(r[7], std::log(std::numeric_limits<double>::denorm_min()));
    EXPECT_TRUE(std::isfinite(r[8]));
  }
}

TEST(Split, WithSkipsItDoesNotCollapse) {
  ModelSpec spec = pure_attention(8);
  for (BlockSpec& b : spec.blocks) b.branches[0].skip = true;
  EXPECT_GT(log_residuals(spec, 1).back(), std::log(0.05));
}

TEST(Split, AMaskMakesItGeometric) {
  // The first token sees only itself: rows differ at order one, and the residual falls by a factor a layer.
  ModelSpec spec = pure_attention(12);
  for (BlockSpec& b : spec.blocks) b.attention().causal = true;
  const std::vector<double> r = log_residuals(spec, 1);
  for (size_t l = 8; l + 1 < r.size(); ++l) EXPECT_GT(r[l + 1] - r[l], std::log(1e-3));
  EXPECT_GT(r.back(), std::log(1e-40));
}

// X = r 1 u^T + R with R of mean zero exactly: from tokens that have much in common to some with nothing at
// all, where a norm of their common part would be 0 / 0.
TEST(Split, NormsTokensThatHaveNothingInCommon) {
  at::manual_seed(3);
  const at::Tensor half = at::randn({3, 16}, at::kDouble), u = at::randn({16}, at::kDouble);
  const at::Tensor R = at::cat({half, -half});
  for (const NormKind kind : {NormKind::layer, NormKind::rms, NormKind::unit})
    for (const double r : {0.0, 1e-300, 1e-16, 1e-12, 1e-9, 1e-7, 1e-4, 1.0}) {
      const NormSpec norm{kind, 0.0};
      Weights w;
      w.set("ln.w",
            kind == NormKind::unit ? at::full({1}, 1.5, at::kDouble) : at::rand({16}, at::kDouble) + 0.5);
      w.set("ln.b", at::randn({16}, at::kDouble));
      const at::Tensor X = R + r * u;
      SplitTokens split(X);
      split.norm(norm, w, "ln");
      const at::Tensor y = apply_norm(X, norm, w, "ln");
      // Halves kept apart lose 2^-53 over the size of the common one, put together 2^-53; a norm has some
      // ten roundings.
      const double rounding = 10 * 0x1p-53 / (r < 0x1p-27 ? 1.0 : r);
      EXPECT_LE(distance(split.whole(), y), rounding) << r;
      EXPECT_LE(distance(split.unit() * std::exp(split.log_scale()), y - y.mean(0)), rounding) << r;
    }
}

TEST(Split, EqualTokensHaveNoResidual) {
  const ModelSpec spec = pure_attention(2);
  const auto source = random_source(spec, 1, "float64", "cpu");
  const Batch batch = make_batches(random_samples({5}, 50), spec, 1).front();
  SplitTokens split(at::ones({5, 192}, at::kDouble));
  split.advance(spec.blocks[0], source->load("blocks.0"), batch);
  EXPECT_EQ(split.residual().log_l1inf, -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace rankscope
