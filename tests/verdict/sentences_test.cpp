// The verdict's sentences, pinned: a table is planted, the words must follow.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "verdict/verdict.h"

namespace rankscope {
namespace {

constexpr int kLayers = 6, kHeads = 2;

class Verdict : public testing::Test {
 protected:
  void SetUp() override {
    BlockSpec block = classic_block(NormPlace::post, {NormKind::layer}, {});
    block.attention().heads = kHeads;
    block.attention().d_qk = 16;
    block.attention().d_v = 32;
    spec_.blocks.assign(kLayers, block);
  }

  void pre_norm() {
    for (BlockSpec& b : spec_.blocks) b.branches[0].before = {NormKind::layer};
  }
  void causal() {
    for (BlockSpec& b : spec_.blocks) b.attention().causal = true;
  }

  Row& add(const std::string& variant, const std::string& site, int layer, int head,
           const std::string& metric, double value, const std::string& tokens = "all") {
    table_.rows.push_back({variant, site, layer, head, metric, value, 0.001 * value, 8, layer + 1, tokens});
    return table_.rows.back();
  }
  Row& residual(const std::string& variant, int layer, double value) {
    const std::string site = !spec_.pre_norm()  ? fmt::format("blocks.{}.hook_resid_post", layer)
                             : layer == kLayers ? "ln_final.hook_normalized"
                                                : fmt::format("blocks.{}.ln1.hook_normalized", layer);
    return add(variant, site, layer, -1, "residual_fro_rel_trimmed", value, "content");
  }
  void residuals(const std::string& variant, const std::vector<double>& values) {
    for (size_t l = 0; l < values.size(); ++l) residual(variant, static_cast<int>(l), values[l]);
  }
  Row& head(int layer, int h, const std::string& metric, double value, const std::string& variant = "full") {
    return add(variant, fmt::format("blocks.{}.attn", layer), layer, h, metric, value);
  }
  void sink(int layer, int h, double margin, const std::string& variant = "full") {
    head(layer, h, "sink_margin", margin, variant);
    head(layer, h, "sink_margin_null", 0.4, variant);
  }
  /// The MLP of a layer: how far tokens differ beside the corpus, in what its units read, in how many
  /// directions.
  void reads(int layer, double spread, double difference = 0.7, double directions = 12,
             const std::string& variant = "full") {
    const std::string site = fmt::format("blocks.{}.mlp.hook_pre", layer);
    add(variant, site, layer, -1, "spread", spread);
    add(variant, site, layer, -1, "unit_sd_rel", difference, "content");
    add(variant, site, layer, -1, "unit_rank", directions, "content");
  }
  void spreads(const std::vector<double>& values, const std::string& variant = "full") {
    for (size_t l = 0; l < values.size(); ++l) reads(static_cast<int>(l), values[l], 0.7, 12, variant);
  }
  void output_kl(const std::string& variant, double value) {
    add(variant, "unembed.hook_out", -1, -1, "output_kl", value);
  }

  std::vector<Finding> all(std::string_view topic) const {
    std::vector<Finding> out;
    for (const Finding& f : judge(table_, spec_, limits_, {shortest_}))
      if (f.topic == topic) out.push_back(f);
    return out;
  }
  /// The sentences of one topic; "? " marks those that are not known.
  std::vector<std::string> said(std::string_view topic) const {
    std::vector<std::string> out;
    for (const Finding& f : all(topic)) out.push_back((f.known ? "" : "? ") + f.sentence);
    return out;
  }
  using Lines = std::vector<std::string>;

  ModelSpec spec_;
  ResultTable table_;
  Thresholds limits_;
  int64_t shortest_ = 100;
};

// ---- collapse

TEST_F(Verdict, ACollapseNamesItsLayersItsNumberItsThresholdAndItsBaseline) {
  spreads({0.9, 0.9, 0.9, 0.9, 0.9, 0.9}, "null:init");
  for (const int l : {0, 1, 5}) reads(l, 0.8);
  for (const int l : {2, 3, 4}) reads(l, 0.02 - 0.005 * (l == 3), 0.01);
  EXPECT_EQ(said("collapse"), Lines{"the tokens of a sample have collapsed to one in the MLPs of layers 2-4, "
                                    "and nothing there tells them "
                                    "apart: spread 0.015 ± 1.5e-05 in the MLP of layer 3, threshold 0.1, "
                                    "random initialisation 0.9; its "
                                    "units differ by 0.01 ± 1e-05 of what they read, threshold 0.1"});
  const Finding f = all("collapse").front();
  EXPECT_EQ(f.layer, 3);
  EXPECT_EQ(f.value, 0.015);
  EXPECT_EQ(f.baseline, 0.9);
  EXPECT_EQ(f.threshold, 0.1);
}

TEST_F(Verdict, TokensThatAreAlikeButReadHaveNotCollapsed) {
  reads(0, 0.8);
  reads(1, 0.02, 0.3);
  EXPECT_EQ(
      said("collapse"),
      (Lines{"the tokens of a sample are nearly all alike in the MLP of layer 1: spread 0.02 ± 2e-05 in the "
             "MLP of "
             "layer 1, threshold 0.1, no baseline; its units differ by 0.3 ± 0.0003 of what they read, "
             "threshold 0.1",
             "? not known whether that is unusual: there is nothing to hold it against; scan with --null or "
             "--baseline DIR"}));
}

TEST_F(Verdict, TokensThatDifferMayStillNotBeRead) {
  reads(0, 0.8, 0.004);
  EXPECT_EQ(said("collapse"), Lines{"tokens differ, but next to nothing of it is read in the MLP of layer 0: "
                                    "spread 0.8 ± 0.0008 in the MLP "
                                    "of layer 0, threshold 0.1, no baseline; its units differ by 0.004 ± "
                                    "4e-06 of what they read, threshold "
                                    "0.1"});
}

TEST_F(Verdict, TokensThatDifferAlongOneDirectionAreAnotherCollapse) {
  reads(0, 0.8);
  reads(1, 0.8, 0.7, 1.04);
  EXPECT_EQ(said("collapse").back(),
            "dimensional collapse: the tokens of a sample differ along one direction in the MLP of layer 1: "
            "unit_rank 1.04 "
            "± 0.001 in the MLP of layer 1, threshold 2");
}

TEST_F(Verdict, WithoutACollapseTheLeastSpreadIsNamed) {
  spreads({0.9, 0.8, 0.9, 0.9, 0.9, 0.9});
  add("full", "blocks.5.hook_resid_post", 5, -1, "spread", 0.7);
  EXPECT_EQ(
      said("collapse"),
      Lines{
          "no layer collapses: the least is spread 0.7 ± 0.0007 after layer 5, threshold 0.1, no baseline"});
}

TEST_F(Verdict, AModelThatIsAsLowAsItsBaselineDidNotCollapse) {
  spreads({0.05});
  spreads({0.06}, "baseline");
  EXPECT_EQ(said("collapse"), Lines{"tokens are much alike in the MLP of layer 0, but no more than in "
                                    "baseline: spread 0.05 ± 5e-05 in the MLP "
                                    "of layer 0, threshold 0.1, baseline 0.06; its units differ by 0.7 ± "
                                    "0.0007 of what they read, threshold "
                                    "0.1"});
}

TEST_F(Verdict, NoiseAcrossTheThresholdIsNotKnown) {
  reads(0, 0.095);
  table_.rows[0].stderr_ = 0.01;
  EXPECT_EQ(said("collapse").front(),
            "? not known in the MLP of layer 0, within two standard errors of a threshold; more samples "
            "would decide: spread "
            "0.095 ± 0.01 in the MLP of layer 0, threshold 0.1, no baseline; its units differ by 0.7 ± "
            "0.0007 of what they "
            "read, threshold 0.1");
}

TEST_F(Verdict, AMissingErrorIsNotKnownAndNeverZero) {
  reads(0, 0.001, 0.001, 1);
  for (Row& r : table_.rows) r.stderr_ = kNone;
  for (const Finding& f : all("collapse")) EXPECT_FALSE(f.known) << f.sentence;
}

TEST_F(Verdict, FewSamplesDecideNothing) {
  reads(0, 0.001);
  sink(0, 0, 9);
  for (Row& r : table_.rows) r.n = 3;
  EXPECT_EQ(said("collapse"), Lines{"? not known: 3 samples decide nothing (few_samples 4)"});
  EXPECT_EQ(
      said("sink"),
      Lines{"? not known: 3 samples decide nothing (few_samples 4); the strongest is L0H0 with margin 9 "
            "± 0.009 nats on a key that is another one in each sample (threshold 3; keys in random "
            "order: 0.4)"});
}

TEST_F(Verdict, NothingMeasuredIsNotKnownAndNothingElse) {
  for (const Finding& f : judge(table_, spec_, limits_, {shortest_})) {
    EXPECT_FALSE(f.known) << f.sentence;
    EXPECT_EQ(f.sentence.substr(0, 9), "not known") << f.sentence;
  }
  EXPECT_EQ(said("collapse"), Lines{"? not known: no spread was measured"});
  EXPECT_TRUE(said("input").empty());
}

TEST_F(Verdict, ANumberThatIsNoNumberIsNoEvidence) {
  add("full", "blocks.0.mlp.hook_pre", 0, -1, "spread", kNone);
  EXPECT_EQ(said("collapse"), Lines{"? not known: no spread was measured"});
}

TEST_F(Verdict, SetThresholdsAreTheOnesUsedAndPrinted) {
  limits_.set("spread", 0.45);
  reads(0, 0.4);
  EXPECT_EQ(said("collapse").front(),
            "the tokens of a sample are nearly all alike in the MLP of layer 0: spread 0.4 ± 0.0004 in the "
            "MLP of layer 0, "
            "threshold 0.45, no baseline; its units differ by 0.7 ± 0.0007 of what they read, threshold 0.1");
}

TEST_F(Verdict, ShortTextsDecideNothing) {
  shortest_ = 1;
  spreads({0.5, 0.01});
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.01});
  residuals("-skip", {0.5, 0.01, 0.01, 0.01, 0.01, 0.001});
  EXPECT_EQ(said("input"),
            Lines{"the shortest sample has 1 content token, fewer than 8: so few tokens say little about "
                  "rank, whatever the model"});
  EXPECT_EQ(
      said("collapse"),
      Lines{
          "? not known: the shortest sample has 1 content token, and so few decide nothing (few_tokens 32)"});
  EXPECT_EQ(said("support"),
            Lines{"? not known whether the skips hold the rank up: the texts are too short; without them "
                  "the lowest residual is 0.001 at layer 5 (full: 0.01)"});
}

// ---- support
// -----------------------------------------------------------------------------------------------------

TEST_F(Verdict, WithoutVariantsTheSupportIsNotKnown) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  EXPECT_EQ(said("support"), Lines{"? not known which part holds the rank up: scan with --off skip"});
}

TEST_F(Verdict, ThePartWithoutWhichTheResidualFallsHoldsTheRankUp) {
  residuals("full", {0.5, 0.45, 0.43, 0.41, 0.42, 0.44});
  residuals("-attention-skip", {0.3, 0.05, 0.001, 2e-5, 3e-5, 4e-5});
  residuals("-skip+mlp", {0.02, 0.03, 0.03, 0.03, 0.03, 0.03});
  EXPECT_EQ(
      said("support"),
      (Lines{"the attention skip holds the rank up: without it the residual falls "
             "below 0.1 by layer 1 and to 2e-05 by "
             "layer 3 (full: 0.41; threshold 0.1)",
             "the skips and the MLP and the norm behind it hold the rank up: without them the residual falls "
             "to 0.02 by layer 0 (full: 0.5; "
             "threshold 0.1)"}));
  const Finding f = all("support").front();
  EXPECT_EQ(f.layer, 3);
  EXPECT_EQ(f.value, 2e-5);
  EXPECT_EQ(f.baseline, 0.41);
}

TEST_F(Verdict, ResidualsBelowTheRoundingFloorAreNotShown) {
  residuals("full", {0.5, 0.45, 0.43, 0.41, 0.42, 0.44});
  residuals("-skip", {0.3, 0.05, 0.001, 4.2e-7, 4.2e-7, 4.2e-7});
  EXPECT_EQ(said("support"),
            Lines{"the skips hold the rank up: without them the residual falls below 0.1 by layer 1 and to "
                  "the rounding floor (1e-06) by layer 3 (full: 0.41; threshold 0.1)"});
}

TEST_F(Verdict, APartThatCanGoDoesNotHoldTheRankUp) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-norm", {0.6, 0.6, 0.6, 0.6, 0.6, 0.48});
  EXPECT_EQ(said("support"), Lines{"the norms do not hold the rank up: without them, and nothing else "
                                   "removed, 0.96 of the full network's "
                                   "residual is left at layer 5 (0.48 ± 0.00048 against 0.5 ± 0.0005; "
                                   "thresholds 0.5 and 0.8), times 0.969 a "
                                   "layer"});
}

TEST_F(Verdict, APartWithoutWhichRankIsLostHoldsItUpThoughTheResidualStands) {
  residuals("full", {0.8, 0.8, 0.8, 0.8, 0.8, 0.8});
  residuals("-skip", {0.7, 0.7, 0.6, 0.6, 0.55, 0.51});
  for (int l = 0; l < kLayers; ++l)
    for (const char* variant : {"full", "-skip"})
      add(variant, fmt::format("blocks.{}.hook_resid_post", l), l, -1, "effective_rank_centered_rel_trimmed",
          variant[0] == 'f' ? 0.64 : 0.64 * std::pow(0.75, l), "content");
  EXPECT_EQ(said("support"), Lines{"the skips hold part of the rank up: without them, and nothing else "
                                   "removed, 0.237 of the full network's "
                                   "effective rank is left at layer 5 (0.152 ± 0.00015 against 0.64 ± "
                                   "0.00064; thresholds 0.5 and 0.8), times "
                                   "0.75 a layer"});
}

TEST_F(Verdict, BetweenTheThresholdsASharesMeaningIsNotKnown) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-position", {0.33, 0.33, 0.33, 0.33, 0.33, 0.33});
  EXPECT_EQ(all("support").front().known, false);
}

TEST_F(Verdict, PartsThatLeaveTogetherAreNamedTogether) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-mlp", {0.6, 0.6, 0.001, 0.6, 0.6, 0.6});
  EXPECT_EQ(said("support").front().substr(0, 52), "the MLP and the norm behind it hold the rank up: wit");
}

TEST_F(Verdict, WhereTheFullNetworkFallsTooTheSupportIsNotKnown) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.02});
  residuals("-position", {0.5, 0.5, 0.5, 0.5, 0.5, 0.01});
  EXPECT_EQ(said("support"),
            Lines{"? not known whether the positions hold the rank up: the full network is itself below 0.1 "
                  "where the one without them is (layer 5: 0.02 and 0.01)"});
}

TEST_F(Verdict, ANoisyVariantDecidesNothing) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residual("-mlp-skip", 0, 0.3).stderr_ = 0.2;
  EXPECT_EQ(said("support"), Lines{"? not known whether the MLP skip holds the rank up: without it, and "
                                   "nothing else removed, 0.6 of the full "
                                   "network's residual is left at layer 0 (0.3 ± 0.2 against 0.5 ± 0.0005; "
                                   "thresholds 0.5 and 0.8), times 1 a "
                                   "layer"});
}

TEST_F(Verdict, AVariantWithoutResidualsDecidesNothing) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  output_kl("-skip", 3);
  EXPECT_EQ(said("support"),
            Lines{"? not known whether the skips hold the rank up: no residual_fro_rel_trimmed was measured "
                  "with and without"});
}

// ---- sinks

TEST_F(Verdict, ASinkIsNamedByItsKindItsMarginAndItsSlope) {
  sink(0, 0, 1.2);
  sink(1, 0, 5);
  sink(1, 1, 4);
  sink(4, 1, 7);
  head(4, 1, "sink_first", 0.9);
  head(4, 1, "sink_slope", -0.25);
  head(4, 1, "sink_mass", 0.8);
  EXPECT_EQ(said("sink"), Lines{"3 of 4 heads are sinks (2 in layer 1, 1 in layer 4): the strongest is L4H1 "
                                "with margin 7 ± 0.007 nats on "
                                "the first token (threshold 3; keys in random order: 0.4; slope in log "
                                "length -0.25; mass 0.8 at this "
                                "length)"});
  EXPECT_EQ(all("sink").front().layer, 4);
  EXPECT_EQ(all("sink").front().head, 1);
}

TEST_F(Verdict, ASinkMayBeAWordWhereverItStandsOrAPosition) {
  sink(0, 0, 5);
  head(0, 0, "sink_key_token", 102);
  head(0, 0, "sink_key_token_share", 0.9);
  head(0, 0, "sink_key_position_share", 0.1);
  EXPECT_NE(said("sink").front().find("on token 102, wherever it stands"), std::string::npos);
  table_.rows.clear();
  sink(0, 0, 5);
  head(0, 0, "sink_key_position", 20);
  head(0, 0, "sink_key_position_share", 1);
  EXPECT_NE(said("sink").front().find("on position 20"), std::string::npos);
}

TEST_F(Verdict, ABaselinesSinksAreCountedBeside) {
  sink(0, 0, 5);
  sink(0, 0, 0.5, "baseline");
  EXPECT_NE(said("sink").front().find("1 of 1 heads are sinks (1 in layer 0)"), std::string::npos);
  EXPECT_NE(said("sink").front().find("; baseline: 0"), std::string::npos);
}

TEST_F(Verdict, WithoutSinksTheStrongestHeadIsNamed) {
  sink(0, 0, 1);
  sink(3, 1, 2);
  EXPECT_EQ(said("sink"), Lines{"no head is a sink: the strongest is L3H1 with margin 2 ± 0.002 nats on a "
                                "key that is another one in each "
                                "sample (threshold 3; keys in random order: 0.4)"});
}

TEST_F(Verdict, AMarginThatKeysInRandomOrderReachIsNoSink) {
  head(0, 0, "sink_margin", 4);
  head(0, 0, "sink_margin_null", 4.5);
  EXPECT_EQ(said("sink").front().substr(0, 17), "no head is a sink");
}

TEST_F(Verdict, AHeadNearTheThresholdIsNotKnownToBeASink) {
  sink(0, 0, 3.001);
  EXPECT_EQ(said("sink").back(),
            "? not known for L0H0: margins too near 3 nats for their errors; more samples would decide");
}

// One head of a hundred a little above the threshold is what chance gives: alone it would be counted.
TEST_F(Verdict, ManyHeadsAreCountedWithoutCountingChance) {
  for (int h = 0; h < 100; ++h) head(0, h, "sink_margin", 2.0).stderr_ = 1;
  table_.rows[0].value = 6.2;  // 3.2 errors above 3
  EXPECT_EQ(said("sink").front().substr(0, 25), "no head is clearly a sink");
  table_.rows.resize(1);
  EXPECT_EQ(said("sink").front().substr(0, 22), "1 of 1 heads are sinks");
}

// ---- heads

TEST_F(Verdict, HeadsThatVaryLittleAreCandidatesUntilAblated) {
  head(0, 0, "head_varied_rel", 0.2);
  head(5, 1, "head_varied_rel", 0.002);
  EXPECT_EQ(said("head"), Lines{"? candidates, not decided: L5H1 (0.002) varies by less than 0.01 of what "
                                "the stream varies; not known "
                                "whether the output needs it: run with --ablate"});
}

TEST_F(Verdict, WithoutCandidatesTheWeakestHeadIsNamed) {
  head(0, 0, "head_varied_rel", 0.2);
  head(5, 1, "head_varied_rel", 0.03);
  EXPECT_EQ(said("head"), Lines{"no head is idle: the weakest, L5H1, varies by 0.03 ± 3e-05 of what the "
                                "stream varies, threshold 0.01, no "
                                "baseline"});
}

TEST_F(Verdict, WhatAHeadsMeanAndItsBiasesCostInItsPlaceDecides) {
  for (const int l : {1, 2, 3}) head(l, 0, "head_varied_rel", 0.001);
  for (const auto& [l, mean, bare] : {std::tuple{1, 2e-5, 3e-5}, {2, 3e-5, 0.4}, {3, 0.2, 0.3}}) {
    output_kl(fmt::format("-head-mean:L{}H0", l), mean);
    output_kl(fmt::format("-head-bare:L{}H0", l), bare);
  }
  EXPECT_EQ(said("head"), (Lines{"L1H0 is silent on this text: with nothing but its biases in its place, and "
                                 "with its mean, the cost is at "
                                 "most output_kl 2e-05 (epsilon 0.001)",
                                 "L2H0 is constant on this text: its mean in its place costs at most "
                                 "output_kl 3e-05 (epsilon 0.001)",
                                 "L3H0 is needed, though varying by less than 0.01 of the stream: with its "
                                 "mean in its place the cost is "
                                 "at least output_kl 0.2 (epsilon 0.001)",
                                 "? not known whether these 2 heads can go together: run with --ablate"}));
}

TEST_F(Verdict, CostsThatAddUpAreNoStandingIn) {
  for (const int l : {1, 2}) {
    head(l, 0, "head_varied_rel", 0.001);
    output_kl(fmt::format("-head-mean:L{}H0", l), 0.0009);
    output_kl(fmt::format("-head-bare:L{}H0", l), 0.0009);
  }
  output_kl("-heads-mean:L1H0+L2H0", 0.0017);
  const auto sample = [&](const std::string& variant, double value) {
    for (int s = 0; s < 8; ++s)
      table_.samples.push_back(
          {variant, "unembed.hook_out", -1, -1, "output_kl", "all", s, value * (1 + 0.01 * s)});
  };
  sample("-head-mean:L1H0", 0.0009), sample("-head-mean:L2H0", 0.0009);
  sample("-heads-mean:L1H0+L2H0", 0.0017);
  EXPECT_NE(said("head").back().find("so small costs add up"), std::string::npos) << said("head").back();
  for (SampleRow& r : table_.samples)
    if (r.variant == "-heads-mean:L1H0+L2H0") r.value = 0.5;
  for (Row& r : table_.rows)
    if (r.variant == "-heads-mean:L1H0+L2H0") r.value = 0.5;
  EXPECT_NE(said("head").back().find("some stand in for others"), std::string::npos) << said("head").back();
}

TEST_F(Verdict, HeadsThatWriteWhatOthersWriteAreNamedHoweverMuchTheyWrite) {
  head(0, 0, "head_varied_rel", 0.4);
  head(0, 0, "head_predicted", 0.999);
  head(0, 1, "head_predicted", 0.1);
  EXPECT_EQ(said("head").back(),
            "L0H0 writes what other heads of the layer write, too: the nearest is L0H0 with R^2 0.999 ± "
            "0.001 (threshold "
            "0.9)");
}

TEST_F(Verdict, AnAblationNearEpsilonDecidesNothing) {
  head(1, 0, "head_varied_rel", 0.001);
  output_kl("-head-mean:L1H0", 0.001);
  EXPECT_EQ(
      said("head"),
      Lines{"? not known for L1H0 (0.001 ± 1e-06): too near epsilon for their errors; more samples would "
            "decide"});
}

TEST_F(Verdict, WithoutAVocabularyTheErrorOfTheHiddenStateHasAThresholdOfItsOwn) {
  add("rank:qk=8", "ln_final.hook_normalized", -1, -1, "output_error", 0.004);
  EXPECT_EQ(said("rank").back(),
            "cutting every head to qk=8 costs output_error 0.004 ± 4e-06 (epsilon 0.01; full: 0): the output "
            "stays");
}

TEST_F(Verdict, LongListsOfHeadsAreCut) {
  for (int l = 0; l < 20; ++l) head(l, 0, "head_varied_rel", 0.001);
  EXPECT_NE(said("head").front().find("L11H0 (0.001) and 8 more vary by less than 0.01"), std::string::npos);
}

// ---- rank
// --------------------------------------------------------------------------------------------------------

TEST_F(Verdict, RankIsHeldAgainstTheHeadsOwnWidth) {
  head(0, 0, "qk_effective_rank", 1.5);  // of 16
  head(0, 1, "qk_effective_rank", 2.0);
  head(0, 0, "qk_effective_rank", 12.0, "null:init");
  head(0, 0, "ov_effective_rank", 4.0);  // of 32
  EXPECT_EQ(said("rank"),
            (Lines{"1 of 2 QK maps are low in rank (L0H0): the lowest is L0H0 with effective rank 1.5 of 16 "
                   "(share 0.0938, threshold 0.1, random initialisation 12)",
                   "no OV map is low in rank: the lowest is L0H0 with effective rank 4 of 32 (share 0.125, "
                   "threshold 0.1, no baseline)"}));
}

TEST_F(Verdict, TruncationSaysWhatItCosts) {
  output_kl("rank:qk=8", 0.02);
  output_kl("rank:ov=16", 2e-5);
  output_kl("rank:qk=12", 0.001);
  const Lines lines = said("rank");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(
      lines[2],
      "cutting every head to qk=8 costs output_kl 0.02 ± 2e-05 (epsilon 0.001; full: 0): the output changes");
  EXPECT_EQ(
      lines[3],
      "cutting every head to ov=16 costs output_kl 2e-05 ± 2e-08 (epsilon 0.001; full: 0): the output stays");
  EXPECT_EQ(lines[4],
            "? cutting every head to qk=12 costs output_kl 0.001 ± 1e-06 (epsilon 0.001; full: 0): not known "
            "whether "
            "that is more than epsilon");
}

// ---- massive
// -----------------------------------------------------------------------------------------------------

TEST_F(Verdict, MassiveActivationsNameTokenAndChannel) {
  for (const int l : {1, 2, 3, 5})
    add("full", fmt::format("blocks.{}.hook_resid_post", l), l, -1, "massive_ratio", 2000 + l);
  add("full", "blocks.4.hook_resid_post", 4, -1, "massive_ratio", 40);
  add("full", "blocks.5.hook_resid_post", 5, -1, "massive_token", 0);
  add("full", "blocks.5.hook_resid_post", 5, -1, "massive_channel", 447);
  add("baseline", "blocks.5.hook_resid_post", 5, -1, "massive_ratio", 35);
  EXPECT_EQ(said("massive"),
            Lines{"massive activations after layers 1-3 and 5: up to 2005 ± 2 times the median at "
                  "blocks.5.hook_resid_post, token 0, channel 447; threshold 1000, baseline 35"});
}

TEST_F(Verdict, WithoutMassiveActivationsTheLargestIsNamed) {
  add("full", "blocks.4.hook_resid_post", 4, -1, "massive_ratio", 40);
  add("full", "blocks.4.ln1.hook_normalized", 4, -1, "massive_ratio", 5000);
  EXPECT_EQ(said("massive"), Lines{"no massive activations: the largest is 40 ± 0.04 times the median at "
                                   "blocks.4.hook_resid_post; threshold 1000, no baseline"});
}

TEST_F(Verdict, HostileVariantNamesAreShownNotObeyed) {
  output_kl("-\x1b[2J", 1);
  output_kl("rank:\x1b[2J", 1);
  for (const Finding& f : judge(table_, spec_, limits_, {shortest_}))
    EXPECT_EQ(f.sentence.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace rankscope
