#include "spec/edit.h"

#include "model/truncate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/random_source.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

using test::tiny_spec;

std::string error_of(auto call) {
  try {
    call();
  } catch (const Error& e) {
    return e.render();
  }
  return "no error";
}

TEST(Surgery, SkipIsBothSkips) {
  EXPECT_EQ(without(tiny_spec(), "skip"), without(tiny_spec(), "attention-skip+mlp-skip"));
  EXPECT_NE(without(tiny_spec(), "skip"), without(tiny_spec(), "attention-skip"));
}

TEST(Surgery, ParallelBlocksHaveOneSkipToTakeOut) {
  ModelSpec parallel = tiny_spec(NormPlace::pre);
  for (BlockSpec& b : parallel.blocks) b.parallel = true;
  for (const char* part : {"mlp-skip", "attention-skip"})
    EXPECT_EQ(
        error_of([&] { without(parallel, part); }),
        fmt::format("error: the blocks of this model are parallel and have one skip for attention and MLP\n"
                    "  in   --off {}\n  try  --off skip\n",
                    part));
  EXPECT_FALSE(without(parallel, "skip").blocks[0].branches[0].skip);
}

TEST(Surgery, OrderOfPartsDoesNotMatter) {
  EXPECT_EQ(without(tiny_spec(), "mlp+skip"), without(tiny_spec(), "skip+mlp"));
}

TEST(Surgery, HeadIsTakenOutOnce) {
  const ModelSpec spec = without(tiny_spec(), "head:L1H3+head:L1H3+head:L1H0");
  EXPECT_EQ(spec.blocks[1].attention().heads_off, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(spec.blocks[0], tiny_spec().blocks[0]);
}

TEST(Surgery, UnknownPartsHeadsAndLayersAreNamed) {
  EXPECT_EQ(error_of([] { without(tiny_spec(), "skipp"); }),
            "error: there is no part \"skipp\"\n  try  skip, mlp, mlp-skip   (rankscope scan --help shows "
            "all 8)\n");
  EXPECT_EQ(error_of([] { without(tiny_spec(), "head:L9H0"); }),
            "error: there is no layer 9: the model has 3, counted from 0\n");
  EXPECT_EQ(error_of([] { without(tiny_spec(), "head:L0H4"); }),
            "error: there is no head 4 in layer 0: it has 4, counted from 0\n");
  EXPECT_EQ(error_of([] { without(tiny_spec(), "head:5"); }),
            "error: \"head:5\" does not name a head\n  try  write head:L0H0\n");
  for (const std::string part : {"head:L99999999999999999999H0", "head:L0H99999999999999999999", "head:9.0"})
    EXPECT_EQ(error_of([&] { without(tiny_spec(), part); }),
              "error: \"" + part + "\" does not name a head\n  try  write head:L0H0\n");
  EXPECT_EQ(error_of([] { without(tiny_spec(), "head:2.1"); }),
            "error: \"head:2.1\" does not name a head\n  try  write head:L2H1\n");
  EXPECT_EQ(error_of([] { with_rank(tiny_spec(), "qk=0"); }),
            "error: \"qk=0\" is not a rank\n  try  write qk=8 or ov=16\n");
}

TEST(Surgery, AnExpertIsTakenOutOfItsLayerAlone) {
  ModelSpec spec = tiny_spec();
  BranchSpec& mlp = *spec.blocks[1].mlp_branch();
  mlp.part = {"experts", *mlp.mlp(), {{"experts", 6}}};
  const ModelSpec out = without(spec, "expert:L1E5");
  EXPECT_EQ(out.blocks[1].mlp_branch()->mlp()->experts_off, (std::vector<int64_t>{5}));
  EXPECT_EQ(out.blocks[0], spec.blocks[0]);
  const auto refusal = [&](const char* part) {
    try {
      without(spec, part);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  EXPECT_EQ(refusal("expert:L1E6"), "there is no expert 6 in layer 1: it has 6, counted from 0");
  EXPECT_EQ(refusal("expert:L0E0"), "layer 0 has no experts");
  EXPECT_EQ(refusal("expert:L9E0"), "there is no layer 9: the model has 3, counted from 0");
  EXPECT_EQ(refusal("expert:1"), "\"expert:1\" does not name an expert");
}

TEST(Surgery, RankAtTheHeadsWidthChangesNothing) {
  EXPECT_EQ(with_rank(tiny_spec(), "qk=6+ov=100"), tiny_spec());
}

TEST(Surgery, RankAtTheStreamsWidthChangesNothingEither) {
  ModelSpec wide = tiny_spec();
  for (BlockSpec& b : wide.blocks) b.attention().d_qk = b.attention().d_v = 128;
  EXPECT_EQ(with_rank(wide, "qk=24+ov=24"), wide);
  EXPECT_NE(with_rank(wide, "qk=23"), wide);
}

class Truncation : public testing::Test {
 protected:
  // A block with biases drawn at random, so that a forgotten one shows.
  Weights drawn(const ModelSpec& spec) {
    Weights w = random_source(spec, 3, "float64", "cpu")->load("blocks.0");
    const auto options = at::TensorOptions().dtype(at::kDouble);
    at::manual_seed(5);
    for (const char* name : {"attn.b_Q", "attn.b_K", "attn.b_V", "attn.b_O"})
      if (w.has(name)) w.set(name, at::randn(w.get(name).sizes(), options));
    return w;
  }
  // W_Q^T W_K of one head.
  static at::Tensor qk(const Weights& w, const AttentionSpec& a, int64_t head) {
    const auto rows = [&](const char* W, int64_t heads) {
      return w.get(W).narrow(0, head / (a.heads / heads) * a.d_qk, a.d_qk);
    };
    return rows("attn.W_Q", a.heads).t().matmul(rows("attn.W_K", a.kv_heads));
  }
  static at::Tensor ov(const Weights& w, const AttentionSpec& a, int64_t head) {
    const int64_t h = head / (a.heads / a.kv_heads);
    return w.get("attn.W_O")
        .narrow(1, head * a.d_v, a.d_v)
        .matmul(w.get("attn.W_V").narrow(0, h * a.d_v, a.d_v));
  }
  static at::Tensor best(const at::Tensor& m, int64_t rank) {
    const auto [U, S, Vh] = at::linalg_svd(m, false);
    return (U.narrow(1, 0, rank) * S.narrow(0, 0, rank)).matmul(Vh.narrow(0, 0, rank));
  }
  static double distance(const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
  }
};

TEST_F(Truncation, GivesTheBestApproximationOfEachHeadsMaps) {
  for (const int64_t kv : {4, 2}) {
    ModelSpec spec = tiny_spec();
    for (BlockSpec& b : spec.blocks) b.attention().kv_heads = kv;
    const Weights before = drawn(spec);
    BlockSpec block = with_rank(spec, "qk=2+ov=3").blocks[0];
    const AttentionSpec old = spec.blocks[0].attention();
    const Weights after = truncated(before, block);
    EXPECT_EQ(block.attention().kv_heads, 4);
    for (int64_t h = 0; h < 4; ++h) {
      EXPECT_LT(distance(qk(after, block.attention(), h), best(qk(before, old, h), 2)), 1e-12) << h;
      EXPECT_LT(distance(ov(after, block.attention(), h), best(ov(before, old, h), 3)), 1e-12) << h;
    }
  }
}

// Scores of one head for tokens that the norm has left without its gain and bias, without their mean over
// keys.
at::Tensor scores(const Weights& w, const AttentionSpec& a, int64_t head, const at::Tensor& normalised) {
  const at::Tensor x = normalised * w.get("ln1.w") + w.get("ln1.b");
  const auto project = [&](const char* W, const char* b) {
    return at::linear(x, w.get(W), w.get(b)).narrow(1, head * a.d_qk, a.d_qk);
  };
  const at::Tensor s = project("attn.W_Q", "attn.b_Q").matmul(project("attn.W_K", "attn.b_K").t());
  return s - s.mean(1, true);
}

// Gains and biases of the norm, biases of queries and keys: none of them is part of the map, and all of them
// were once cut with it.
TEST_F(Truncation, AMapThatHasThatRankKeepsItsScores) {
  const ModelSpec spec = tiny_spec(NormPlace::pre);
  const AttentionSpec& a = spec.blocks[0].attention();
  Weights before = drawn(spec);
  const auto wide = at::TensorOptions().dtype(at::kDouble);
  before.set("ln1.w", at::rand({24}, wide) + 0.5);
  before.set("ln1.b", at::randn({24}, wide));
  for (const char* name : {"attn.W_Q", "attn.W_K"}) {
    at::Tensor W = before.get(name).clone();
    for (int64_t h = 0; h < 4; ++h)
      W.narrow(0, 6 * h, 6).copy_(at::randn({6, 2}, wide).matmul(at::randn({2, 24}, wide)));
    before.set(name, W);
  }
  BlockSpec block = with_rank(spec, "qk=2").blocks[0];
  const Weights after = truncated(before, block);
  const at::Tensor x = at::randn({15, 24}, wide);
  for (int64_t h = 0; h < 4; ++h)
    EXPECT_LT(distance(scores(after, block.attention(), h, x), scores(before, a, h, x)), 1e-12) << h;
}

TEST_F(Truncation, IsBestWhereTheNormsGainIsPartOfTheMap) {
  const ModelSpec spec = tiny_spec(NormPlace::pre);
  Weights before = drawn(spec);
  const at::Tensor gain = at::rand({24}, at::TensorOptions().dtype(at::kDouble)) + 0.5;
  before.set("ln1.w", gain);
  BlockSpec block = with_rank(spec, "qk=2").blocks[0];
  const Weights after = truncated(before, block);
  const auto folded = [&](const at::Tensor& map) { return gain.unsqueeze(1) * map * gain; };
  for (int64_t h = 0; h < 4; ++h)
    EXPECT_LT(distance(folded(qk(after, block.attention(), h)),
                       best(folded(qk(before, spec.blocks[0].attention(), h)), 2)),
              1e-12);
}

TEST_F(Truncation, UnderRotaryPositionsCutsQueriesAndKeysApartAndLeavesTheirBiases) {
  ModelSpec spec = tiny_spec(NormPlace::pre);
  for (BlockSpec& b : spec.blocks) b.attention().rotary_frequencies = {1.0, 0.1, 0.01};
  const Weights before = drawn(spec);
  BlockSpec block = with_rank(spec, "qk=2").blocks[0];
  const Weights after = truncated(before, block);
  for (const char* name : {"attn.W_Q", "attn.W_K"})
    for (int64_t h = 0; h < 4; ++h)
      EXPECT_LT(distance(after.get(name).narrow(0, 6 * h, 6), best(before.get(name).narrow(0, 6 * h, 6), 2)),
                1e-12);
  for (const char* name : {"attn.b_Q", "attn.b_K"})
    EXPECT_EQ(distance(after.get(name), before.get(name)), 0) << name;
}

TEST_F(Truncation, KeepsTheContributionOfTheValueBias) {
  const ModelSpec spec = tiny_spec();
  const Weights before = drawn(spec);
  BlockSpec block = with_rank(spec, "ov=1").blocks[0];
  const Weights after = truncated(before, block);
  const auto constant = [](const Weights& w) {
    return w.get("attn.W_O").matmul(w.get("attn.b_V")) + w.get("attn.b_O");
  };
  EXPECT_LT(distance(constant(after), constant(before)), 1e-12);
}

// Rows sum to less than one: a query adds its row's sum of the bias, whatever that is.
TEST_F(Truncation, KeepsTheValueBiasInADimensionOfItsOwnUnderLearnedSinks) {
  ModelSpec spec = tiny_spec();
  for (BlockSpec& b : spec.blocks) b.attention().sinks = true;
  const Weights before = drawn(spec);
  BlockSpec block = with_rank(spec, "ov=2").blocks[0];
  const Weights after = truncated(before, block);
  const AttentionSpec& a = block.attention();
  for (int64_t h = 0; h < a.heads; ++h) {
    const auto of_bias = [&](const Weights& w) {
      return w.get("attn.W_O").narrow(1, h * a.d_v, a.d_v).mv(w.get("attn.b_V").narrow(0, h * a.d_v, a.d_v));
    };
    EXPECT_LT(distance(of_bias(after), of_bias(before)), 1e-12) << h;
    EXPECT_LT(distance(ov(after, a, h), best(ov(before, spec.blocks[0].attention(), h), 2)), 1e-12) << h;
  }
  EXPECT_EQ(distance(after.get("attn.b_O"), before.get("attn.b_O")), 0);
}

ModelSpec two_streams() {
  ModelSpec spec = tiny_spec(NormPlace::pre);
  StreamSpec encoder = tiny_spec(NormPlace::pre, 2);
  encoder.name = "encoder";
  for (BlockSpec& block : spec.blocks) {
    BranchSpec cross = *block.attention_branch();
    cross.name = "cross";
    cross.norm_name = "ln_cross";
    cross.reads = "encoder";
    block.branches.insert(block.branches.begin() + 1, cross);
  }
  spec.sources.push_back(encoder);
  return spec;
}

TEST(Surgery, PartsAreTakenOutOfEveryStreamAndHeadsOutOfOne) {
  const ModelSpec spec = without(two_streams(), "skip+norm+position");
  const StreamSpec *decoder = &spec, *encoder = &spec.sources.front();
  for (const StreamSpec* s : {decoder, encoder}) {
    EXPECT_FALSE(s->embedding.use_positions);
    EXPECT_TRUE(s->final_norm.off);
    for (const BlockSpec& block : s->blocks)
      for (const BranchSpec& b : block.branches) EXPECT_TRUE(!b.skip && b.before.off) << b.name;
  }
  const ModelSpec cut = with_rank(two_streams(), "qk=2");
  EXPECT_EQ(cut.sources.front().blocks[0].attention().truncate_qk, 2);
  EXPECT_EQ(cut.blocks[0].branches[1].attention()->truncate_qk, 2);

  const ModelSpec heads = without(two_streams(), "head:encoder.L1H2+head:cross.L2H3+head:decoder.L0H1");
  EXPECT_EQ(heads.sources.front().blocks[1].attention().heads_off, (std::vector<int64_t>{2}));
  EXPECT_EQ(heads.blocks[2].branches[1].attention()->heads_off, (std::vector<int64_t>{3}));
  EXPECT_EQ(heads.blocks[2].attention().heads_off, (std::vector<int64_t>{}));
  EXPECT_EQ(heads.blocks[0].attention().heads_off, (std::vector<int64_t>{1}));
  EXPECT_EQ(without(two_streams(), "head:L0H1"), without(two_streams(), "head:decoder.L0H1"));
}

TEST(Surgery, StreamsThatAreNotThereAreNamed) {
  EXPECT_EQ(error_of([] { without(two_streams(), "head:encoder.L2H0"); }),
            "error: there is no layer 2: the encoder has 2, counted from 0\n");
  EXPECT_EQ(
      error_of([] { without(tiny_spec(), "head:encoder.L0H0"); }),
      "error: this network has one stream, and none called \"encoder\"\n  in   --off head:encoder.L0H0\n"
      "  try  --off head:L0H0\n");
}

}  // namespace
}  // namespace rankscope
