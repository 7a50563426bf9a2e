// Cases in which the verdict once said something false, each planted again. Where a network's parts are
// drawn, any draw will do: what is planted decides.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bank/bank.h"

namespace rankscope::bank {
namespace {

enum class Reads { pre_layer, pre_rms, post };

/// A network without anything planted, of that kind.
Planted plain(Reads kind, bool causal, int64_t samples = 16, int64_t length = 64) {
  for (uint64_t i = 0;; ++i) {
    Draw draw(7, i);
    Planted p = healthy("case", draw, samples, length);
    const NormKind norm = p.spec.pre_norm() ? p.spec.final_norm.kind : NormKind::none;
    const NormKind wanted = kind == Reads::pre_layer ? NormKind::layer
                            : kind == Reads::pre_rms ? NormKind::rms
                                                     : NormKind::none;
    if (norm == wanted && p.spec.causal() == causal) return p;
  }
}

std::string all_of(const Said& said) { return fmt::format("{}", fmt::join(said.sentences, "\n")); }

/// A sentence up to its numbers.
std::vector<std::string> words_of(const Said& said) {
  std::vector<std::string> out;
  for (const std::string& s : said.sentences) out.push_back(s.substr(0, s.find_first_of("0123456789")));
  return out;
}

Claim::Answer answer(const Said& said, const std::string& subject) {
  const auto found = said.answers.find(subject);
  return found == said.answers.end() ? Claim::Answer::unknown : found->second;
}

double value(const Said& said, const std::string& metric, int layer, int head = -1) {
  for (const Row& r : said.table.rows)
    if (r.variant == "full" && r.metric.str() == metric && r.layer == layer && r.head == head) return r.value;
  ADD_FAILURE() << "no " << metric;
  return kNone;
}

TEST(Cases, TwoCheckpointsThatComputeTheSameFunctionGetTheSameSentences) {
  Planted p = plain(Reads::pre_layer, true);
  p.off = {"skip"};
  const Said before = ask(p);
  Stored& w = *p.weights;
  for (int64_t l = 0; l < 2; ++l) {  // a bias of ln1, taken off again in the biases behind it
    const at::Tensor shift = at::full({kWidth}, 15.0);
    w[block(l, "ln1.b")] += shift;
    for (const char* part : {"Q", "K", "V"})
      w[block(l, fmt::format("attn.b_{}", part))] -=
          at::mv(w[block(l, fmt::format("attn.W_{}", part))], shift);
  }
  const Said after = ask(p);
  EXPECT_EQ(before.answers, after.answers) << all_of(before) << "\n---\n" << all_of(after);
  EXPECT_EQ(words_of(before), words_of(after));
  EXPECT_NE(answer(before, "holds -skip"), Claim::Answer::unknown) << all_of(before);
}

TEST(Cases, AMassiveChannelThatALayerNormSpreadsIsFoundBeforeTheNorm) {
  Planted p = plain(Reads::pre_layer, false);
  (*p.weights)["embed.W_pos"].select(1, 20).fill_(5000);
  p.off = {"mlp"};
  p.channels = true;
  const Said said = ask(p);
  EXPECT_EQ(value(said, "normed_channels", 0), 1) << all_of(said);
  // What is left are words drawn independently, and what parts that see the channel alone add to all of them:
  // of about their size. Behind the norm, with the channel's share in it, nothing tells words apart (0.006).
  EXPECT_GT(value(said, "residual_fro_rel_normed", 0), 0.4);
  EXPECT_EQ(answer(said, "massive"), Claim::Answer::yes);
  EXPECT_EQ(answer(said, "alike 0"), Claim::Answer::no);
}

// The same behind norms that are part of the stream: parts that write nothing leave tokens to the norms
// alone.
TEST(Cases, AMassiveChannelThatANormBehindTheBlockSpreadsIsFoundBeforeThatNorm) {
  Planted p = plain(Reads::post, false);
  Stored& w = *p.weights;
  w["embed.W_pos"].select(1, 20).fill_(5000);
  for (int64_t l = 0; l < 2; ++l)
    for (const char* name : {"attn.W_O", "attn.b_O", "mlp.W_out", "mlp.b_out"}) w[block(l, name)].zero_();
  Draw draw(14, 0);
  w["blocks.1.ln2.w"] = (0.5 * draw.normal({kWidth})).exp();
  p.off = {"attention-skip"};
  p.channels = true;
  const Said said = ask(p);
  for (int l = 0; l < 2; ++l) {
    EXPECT_EQ(value(said, "normed_channels", l), 1) << all_of(said);
    // Words drawn independently have the residual sqrt(1 - 1/n), and gains leave them independent; with the
    // channel's share they have 0.006.
    EXPECT_GT(value(said, "residual_fro_rel_normed", l), 0.9) << all_of(said);
  }
  EXPECT_EQ(answer(said, "massive"), Claim::Answer::yes);
  EXPECT_EQ(answer(said, "alike 0"), Claim::Answer::no);
}

// Units that let nothing through read what they will: the others are what the layer reads with.
TEST(Cases, UnitsThatWriteNothingSayNothingOfWhatIsRead) {
  constexpr int64_t kAll = 64;
  const auto unread = [](int64_t dead, double live_bias) {
    Planted p = plain(Reads::pre_layer, false);
    for (BlockSpec& b : p.spec.blocks) b.mlp_branch()->mlp()->activation = Activation::relu;
    Stored& w = *p.weights;
    const std::string in = block(0, "mlp.b_in");
    w[in].narrow(0, 0, dead).fill_(-100);
    w[block(0, "mlp.W_in")].narrow(0, 0, dead) *= 5;  // what they read differs widely all the same
    w[in].narrow(0, dead, kAll - dead).fill_(live_bias);
    return answer(ask(p), "unread 0");
  };
  for (const int64_t dead : {40, 60}) {
    EXPECT_EQ(unread(dead, 0), Claim::Answer::no) << dead << " are dead, the others read";
    EXPECT_EQ(unread(dead, 300), Claim::Answer::yes) << dead << " are dead, what is alive is nearly constant";
  }
}

TEST(Cases, TokensOfRankOneAreADimensionalCollapseThoughTheirResidualIsLarge) {
  Planted p = plain(Reads::pre_rms, false);
  Draw draw(8, 0);
  const at::Tensor along = draw.normal({kWidth});
  (*p.weights)["embed.W_E"] = at::outer(draw.normal({kWords}), along);
  (*p.weights)["blocks.0.attn.W_O"].zero_();
  p.off = {"mlp"};
  const Said said = ask(p);
  EXPECT_GT(value(said, "residual_fro_rel_normed", 0), 0.8);
  EXPECT_EQ(answer(said, "one direction 0"), Claim::Answer::yes) << all_of(said);
  EXPECT_EQ(answer(said, "alike 0"), Claim::Answer::no);
}

// e^5 / (e^5 + t - 1) of the attention goes to the first token: .91 at 16 tokens, .22 at 512, and the margin
// is 5 nats.
TEST(Cases, ASinksMarginIsTheSameAtEveryLengthAndFewTokensDecideNothing) {
  for (const int64_t length : {16, 40, 128, 512}) {
    Planted p = plain(Reads::pre_rms, false, 4, length);
    mark_position(p, 0, 0);
    look_at_mark(p, 0, 0, 5);
    const Said said = ask(p);
    // Words have one size and keep off the mark, so its score is 5 to the rounding of a few float32 products.
    EXPECT_NEAR(value(said, "sink_margin", 0, 0), 5, 1e-4) << length;
    EXPECT_EQ(answer(said, "sink L0H0"), length < 32 ? Claim::Answer::unknown : Claim::Answer::yes)
        << all_of(said);
  }
}

TEST(Cases, ASinkInTheMiddleOfACausalTextIsFound) {
  Planted p = plain(Reads::pre_rms, true, 8, 40);
  mark_position(p, 20, 0);
  look_at_mark(p, 0, 0, 30);
  const Said said = ask(p);
  EXPECT_EQ(answer(said, "sink L0H0"), Claim::Answer::yes) << all_of(said);
  EXPECT_NE(all_of(said).find("on position 20"), std::string::npos) << all_of(said);
}

TEST(Cases, ASinkThatIsAnotherTokenElsewhereInEverySampleIsFoundAndSaidToBe) {
  Planted p = plain(Reads::pre_rms, false, 8, 40);
  for (int64_t s = 0; s < 8; ++s) {
    (*p.weights)["embed.W_E"][kWords - 1 - s] += kMark * marker(0);
    for (int64_t& id : p.samples[static_cast<size_t>(s)].ids) id = 1 + id % 80;  // none of those
    p.samples[static_cast<size_t>(s)].ids[static_cast<size_t>(3 + 4 * s)] = kWords - 1 - s;
  }
  look_at_mark(p, 0, 0, 10);
  const Said said = ask(p);
  EXPECT_EQ(answer(said, "sink L0H0"), Claim::Answer::yes) << all_of(said);
  EXPECT_NE(all_of(said).find("a key that is another one in each sample"), std::string::npos) << all_of(said);
}

TEST(Cases, OneSampleHasNoErrorAndDecidesNothing) {
  Planted p = plain(Reads::pre_rms, true, 1, 64);
  mark_position(p, 20, 0);
  look_at_mark(p, 0, 0, 30);
  for (const auto& [subject, what] : ask(p).answers) EXPECT_EQ(what, Claim::Answer::unknown) << subject;
}

// Attention to equal words writes two directions alone: without the skip tokens still differ, along those
// two.
TEST(Cases, APartWithoutWhichRankFallsHoldsItUpThoughTheResidualStands) {
  Planted p = plain(Reads::pre_rms, false);
  Stored& w = *p.weights;
  Draw draw(9, 0);
  for (int64_t l = 0; l < 2; ++l) {
    w[block(l, "attn.W_Q")] = 6 * w[block(l, "attn.W_K")];
    w[block(l, "attn.W_K")] *= 6;
    w[block(l, "attn.W_O")] = draw.normal({kWidth, 2}).matmul(draw.normal({2, kWidth}));
  }
  p.off = {"attention-skip"};
  const Said said = ask(p);
  EXPECT_EQ(answer(said, "holds -attention-skip"), Claim::Answer::yes) << all_of(said);
  EXPECT_NE(all_of(said).find("nothing else removed"), std::string::npos) << all_of(said);
}

TEST(Cases, PartsThatLeaveTogetherAreNamedTogether) {
  Planted p = plain(Reads::post, false);
  p.off = {"mlp"};
  EXPECT_NE(all_of(ask(p)).find("the MLP and the norm behind it"), std::string::npos);
}

TEST(Cases, WeakHeadsWhoseCostsAddUpAreNoStandInsAndSaturatedOnesAre) {
  bool seen[2] = {false, false};
  for (uint64_t i = 0; !(seen[0] && seen[1]) && i < 8; ++i) {
    Draw draw(11, i, i);
    Planted p = stand_ins(draw, 16, 64);
    const bool yes = p.truth.front().second;
    if (std::exchange(seen[yes], true)) continue;
    const Said said = ask(p);
    for (const auto& [subject, truth] : p.truth)
      EXPECT_EQ(answer(said, subject), truth ? Claim::Answer::yes : Claim::Answer::no) << all_of(said);
    EXPECT_EQ(all_of(said).find("none stand in for each other") == std::string::npos, yes) << all_of(said);
  }
  EXPECT_TRUE(seen[0] && seen[1]);
}

TEST(Cases, IdenticalHeadsAreFoundHoweverWeak) {
  Planted p = plain(Reads::pre_rms, false);
  for (const char* name : {"W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"}) {
    at::Tensor& t = (*p.weights)[block(0, fmt::format("attn.{}", name))];
    t.narrow(0, kHeadWidth, kHeadWidth).copy_(t.narrow(0, 0, kHeadWidth).clone());
  }
  at::Tensor& W_O = (*p.weights)["blocks.0.attn.W_O"];
  W_O.narrow(1, 0, kHeadWidth) *= 0.002;
  W_O.narrow(1, kHeadWidth, kHeadWidth).copy_(W_O.narrow(1, 0, kHeadWidth).clone());
  const Said said = ask(p);
  for (int h = 0; h < kHeads; ++h)
    EXPECT_EQ(answer(said, fmt::format("duplicate L0H{}", h)), h < 2 ? Claim::Answer::yes : Claim::Answer::no)
        << all_of(said);
}

TEST(Cases, TheRoundingFloorIsNamedAndNoDigitsBelowItAreShown) {
  Planted p = plain(Reads::pre_rms, false);
  copy_first_token(p, 1);
  p.off = {"attention-skip"};
  const Said said = ask(p);
  EXPECT_NE(all_of(said).find("the rounding floor (1e-06)"), std::string::npos) << all_of(said);
}

TEST(Cases, WithoutAVocabularyTheOutputHasItsOwnNameAndThreshold) {
  Planted p = plain(Reads::pre_rms, false);
  p.spec.output = {};
  p.weights->edit().output = {};
  p.rank = {"qk=2"};
  const Said said = ask(p);
  EXPECT_NE(all_of(said).find("costs output_error"), std::string::npos) << all_of(said);
  EXPECT_NE(all_of(said).find("(epsilon 0.01"), std::string::npos) << all_of(said);
}

// A map of rank 2 cut to 2, whatever gain and bias stand before it.
TEST(Cases, CuttingAMapToTheRankItHasCostsNothing) {
  for (const char* map : {"qk=2", "ov=2"}) {
    Planted p = plain(Reads::pre_layer, false);
    Draw draw(12, 0);
    Stored& w = *p.weights;
    for (int64_t l = 0; l < 2; ++l) {
      for (const char* name : {"attn.W_Q", "attn.W_V"})
        for (int64_t h = 0; h < kHeads; ++h)
          w[block(l, name)]
              .narrow(0, h * kHeadWidth, kHeadWidth)
              .copy_(draw.normal({kHeadWidth, 2}).matmul(draw.normal({2, kWidth})) * 0.15);
      w[block(l, "ln1.w")] = (0.7 * draw.normal({kWidth})).exp();
      w[block(l, "ln1.b")] = draw.normal({kWidth});
    }
    p.rank = {map};
    const Said said = ask(p);
    EXPECT_EQ(answer(said, fmt::format("keeps rank:{}", map)), Claim::Answer::yes) << all_of(said);
  }
}

// The best cut of a map of full rank, too, is one of the map that tokens meet.
TEST(Cases, WhatACutCostsDoesNotDependOnTheNormsGain) {
  for (const char* map : {"qk=2", "ov=2"}) {
    Planted p = plain(Reads::pre_layer, false);
    p.rank = {map};
    const auto cost = [&] {
      for (const Row& r : ask(p).table.rows)
        if (r.metric == "output_kl") return r.value;
      return kNone;
    };
    const double before = cost();
    Draw draw(13, 0);
    for (int64_t l = 0; l < 2; ++l)
      move_gain(*p.weights, draw, block(l, "ln1"),
                {{block(l, "attn.W_Q"), block(l, "attn.b_Q")},
                 {block(l, "attn.W_K"), block(l, "attn.b_K")},
                 {block(l, "attn.W_V"), block(l, "attn.b_V")}});
    // Float32 weights that are multiplied and divided by factors up to e: a few parts in a million, twice
    // through the network, beside a divergence that is quadratic in them.
    EXPECT_NEAR(cost(), before, 1e-3 * before) << map;
  }
}

}  // namespace
}  // namespace rankscope::bank
