// The verdict's sentences, pinned: a table is planted, the words must follow.
#include <fmt/format.h>
#include <gtest/gtest.h>

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
  void trimmed(int layer, double untrimmed, double channels, double tokens) {
    const std::string site = fmt::format("blocks.{}.hook_resid_post", layer);
    add("full", site, layer, -1, "residual_fro_rel", untrimmed);
    add("full", site, layer, -1, "trimmed_channels", channels, "content");
    add("full", site, layer, -1, "trimmed_tokens", tokens, "content");
  }
  void head(int layer, int h, const std::string& metric, double value, const std::string& variant = "full") {
    add(variant, fmt::format("blocks.{}.attn", layer), layer, h, metric, value);
  }
  void sink(int layer, int h, double mass, double position, const std::string& variant = "full") {
    head(layer, h, "sink_mass", mass, variant);
    head(layer, h, "sink_position", position, variant);
    head(layer, h, "sink_uniform", 0.0625, variant);
  }
  void output_kl(const std::string& variant, double value) {
    add(variant, "unembed.hook_out", -1, -1, "output_kl", value);
  }

  std::vector<Finding> all(std::string_view topic) const {
    std::vector<Finding> out;
    for (const Finding& f : judge(table_, spec_, limits_, shortest_))
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
// ----------------------------------------------------------------------------------------------------

TEST_F(Verdict, ACollapseNamesItsLayersItsNumberItsThresholdAndItsBaseline) {
  residuals("full", {0.5, 0.4, 0.05, 0.02, 0.03, 0.3});
  residuals("null:init", {0.6, 0.6, 0.6, 0.6, 0.6, 0.6});
  EXPECT_EQ(said("collapse"),
            Lines{"tokens are nearly all alike after layers 2-4: residual 0.02 ± 2e-05 at layer 3, "
                  "threshold 0.1, random initialisation 0.6"});
  const Finding f = all("collapse").front();
  EXPECT_EQ(f.layer, 3);
  EXPECT_EQ(f.value, 0.02);
  EXPECT_EQ(f.baseline, 0.6);
  EXPECT_EQ(f.threshold, 0.1);
}

TEST_F(Verdict, AnotherCheckpointGoesBeforeRandomInitialisation) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.4});
  residuals("null:init", {0.9, 0.9, 0.9, 0.9, 0.9, 0.9});
  residuals("baseline", {0.7, 0.7, 0.7, 0.7, 0.7, 0.7});
  EXPECT_EQ(said("collapse"), Lines{"no layer collapses: the lowest residual is 0.4 ± 0.0004 (after layer "
                                    "5), threshold 0.1, baseline 0.7"});
}

TEST_F(Verdict, AMassiveTokenDoesNotHideACollapse) {
  residuals("full", {0.5, 0.5, 0.01, 0.5, 0.5, 0.5});
  residuals("baseline", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  trimmed(2, 0.93, 0, 1);
  EXPECT_EQ(said("collapse"), Lines{"tokens are nearly all alike after layer 2: residual 0.01 ± 1e-05 at "
                                    "layer 2, threshold 0.1, baseline "
                                    "0.5; left out there: 0 massive channels and 1 massive token a sample; "
                                    "with every token and channel it "
                                    "would read 0.93"});
}

TEST_F(Verdict, AMassiveChannelDoesNotMakeACollapse) {
  residuals("full", {0.5, 0.5, 0.45, 0.5, 0.4, 0.5});
  residuals("baseline", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  trimmed(2, 0.02, 1, 0);
  EXPECT_EQ(said("collapse"), Lines{"no layer collapses: the lowest residual is 0.4 ± 0.0004 (after layer "
                                    "4), threshold 0.1, baseline 0.5; "
                                    "with every token and channel it would read 0.02 at layer 2; left out "
                                    "there: 1 massive channel and 0 "
                                    "massive tokens a sample"});
}

TEST_F(Verdict, PreNormModelsAreJudgedWhereAttentionSeesThem) {
  pre_norm();
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.05, 0.04, 0.03});
  residuals("null:init", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  add("full", "blocks.0.hook_resid_post", 0, -1, "residual_fro_rel_trimmed", 0.001, "content");
  EXPECT_EQ(said("collapse"),
            Lines{"tokens are nearly all alike at the input of layers 4-5 and at the final norm: residual "
                  "0.03 ± 3e-05 at the final norm, threshold 0.1, random initialisation 0.5"});
}

TEST_F(Verdict, WithoutABaselineWhetherACollapseIsUnusualIsNotKnown) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.05});
  EXPECT_EQ(
      said("collapse"),
      (Lines{"tokens are nearly all alike after layer 5: residual 0.05 ± 5e-05 at layer 5, threshold 0.1, no "
             "baseline",
             "? not known whether that is unusual: there is nothing to hold it against; scan with --null or "
             "--baseline DIR"}));
}

TEST_F(Verdict, AModelThatIsAsLowAsItsBaselineDidNotCollapse) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.05});
  residuals("baseline", {0.5, 0.5, 0.5, 0.5, 0.5, 0.06});
  EXPECT_EQ(said("collapse"),
            Lines{"tokens are much alike after layer 5, but no more than in baseline: residual 0.05 ± "
                  "5e-05 at layer 5, baseline 0.06, which is not below 0.5 times that"});
}

TEST_F(Verdict, NoiseAcrossTheThresholdIsNotKnown) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5});
  residual("full", 5, 0.095).stderr_ = 0.01;
  EXPECT_EQ(said("collapse"),
            Lines{"? not known after layer 5: residual 0.095 ± 0.01 at layer 5 is within two standard "
                  "errors of its threshold (0.1, no baseline); more samples would decide"});
}

TEST_F(Verdict, OneSampleHasNoErrorBarAndSaysSo) {
  Row& r = residual("full", 0, 0.4);
  r.stderr_ = kNone;
  r.n = 1;
  EXPECT_EQ(said("collapse"),
            Lines{"no layer collapses: the lowest residual is 0.4 (after layer 0), threshold 0.1, no "
                  "baseline; one sample, so no error bar"});
}

TEST_F(Verdict, NothingMeasuredIsNotKnownAndNothingElse) {
  for (const Finding& f : judge(table_, spec_, limits_, shortest_)) {
    EXPECT_FALSE(f.known) << f.sentence;
    EXPECT_EQ(f.sentence.substr(0, 9), "not known") << f.sentence;
  }
  EXPECT_EQ(said("collapse"),
            Lines{"? not known: no residual_fro_rel_trimmed of content tokens was measured"});
  EXPECT_TRUE(said("input").empty());
}

TEST_F(Verdict, ANumberThatIsNoNumberIsNoEvidence) {
  residual("full", 0, kNone);
  EXPECT_EQ(said("collapse"),
            Lines{"? not known: no residual_fro_rel_trimmed of content tokens was measured"});
}

TEST_F(Verdict, SetThresholdsAreTheOnesUsedAndPrinted) {
  limits_.set("collapse", 0.45);
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.4});
  EXPECT_EQ(said("collapse").front(),
            "tokens are nearly all alike after layer 5: residual 0.4 ± 0.0004 at layer 5, threshold 0.45, no "
            "baseline");
}

TEST_F(Verdict, ShortTextsDecideNothingAboutResiduals) {
  shortest_ = 1;
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.01});
  residuals("-skip", {0.5, 0.01, 0.01, 0.01, 0.01, 0.001});
  EXPECT_EQ(said("input"),
            Lines{"the shortest sample has 1 content token, fewer than 8: so few tokens say little about "
                  "rank, whatever the model"});
  EXPECT_EQ(said("collapse"),
            Lines{"? not known: the texts are too short; the lowest residual is 0.01 (after layer 5), "
                  "threshold 0.1, no baseline"});
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
  residuals("-attention-skip", {0.3, 0.05, 0.001, 2e-7, 3e-7, 4e-7});
  residuals("-skip+mlp", {0.02, 0.03, 0.03, 0.03, 0.03, 0.03});
  EXPECT_EQ(said("support"), (Lines{"the attention skip holds the rank up: without it the residual falls "
                                    "below 0.1 by layer 1 and to 2e-07 by "
                                    "layer 3 (full: 0.41; threshold 0.1)",
                                    "the skips and the MLP hold the rank up: without them the residual falls "
                                    "to 0.02 by layer 0 (full: 0.5; "
                                    "threshold 0.1)"}));
  const Finding f = all("support").front();
  EXPECT_EQ(f.layer, 3);
  EXPECT_EQ(f.value, 2e-7);
  EXPECT_EQ(f.baseline, 0.41);
}

TEST_F(Verdict, APartThatCanGoDoesNotHoldTheRankUp) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-mlp", {0.6, 0.6, 0.38, 0.6, 0.6, 0.6});
  residuals("-norm", {0.6, 0.6, 0.6, 0.6, 0.6, 0.39});
  EXPECT_EQ(said("support"),
            (Lines{"the MLP does not hold the rank up alone: without it the residual stays at 0.38 or above "
                   "(layer 2; full: 0.5; threshold 0.1)",
                   "the norms do not hold the rank up alone: without them the residual stays at 0.39 or "
                   "above (layer 5; full: 0.5; threshold 0.1)"}));
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
  residual("-mlp-skip", 0, 0.11).stderr_ = 0.02;
  EXPECT_EQ(said("support"),
            Lines{"? not known whether the MLP skip holds the rank up: without it the residual 0.11 ± 0.02 "
                  "at layer 0 is within two standard errors of the threshold 0.1 (full: 0.5 ± 0.0005)"});
}

TEST_F(Verdict, AVariantWithoutResidualsDecidesNothing) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  output_kl("-skip", 3);
  EXPECT_EQ(said("support"),
            Lines{"? not known whether the skips hold the rank up: no residual_fro_rel_trimmed was measured "
                  "with and without"});
}

// ---- sinks
// -------------------------------------------------------------------------------------------------------

TEST_F(Verdict, ACausalSinkAtTheFirstTokenIsNamedAsSuch) {
  causal();
  sink(0, 0, 0.2, 3);
  sink(1, 0, 0.8, 0);
  sink(1, 1, 0.5, 0);
  sink(4, 1, 0.9, 0);
  EXPECT_EQ(
      said("sink"),
      Lines{"3 of 4 heads are sinks (2 in layer 1, 1 in layer 4): the strongest is L4H1 with mass 0.9 ± "
            "0.0009 on position 0, the first token of a causal model (uniform attention: 0.0625; "
            "threshold: 0.3 above it)"});
  EXPECT_EQ(all("sink").front().layer, 4);
  EXPECT_EQ(all("sink").front().head, 1);
}

TEST_F(Verdict, AnEncodersSinkIsOnlyAPosition) {
  sink(0, 0, 0.9, 0);
  sink(0, 0, 0.1, 0, "baseline");
  EXPECT_EQ(said("sink"),
            Lines{"1 of 1 heads are sinks (1 in layer 0): the strongest is L0H0 with mass 0.9 ± 0.0009 on "
                  "position 0 (uniform attention: 0.0625; threshold: 0.3 above it); baseline: 0"});
}

TEST_F(Verdict, WithoutSinksTheStrongestHeadIsNamed) {
  sink(0, 0, 0.2, 5);
  sink(3, 1, 0.25, 7);
  EXPECT_EQ(said("sink"),
            Lines{"no head is a sink: the strongest is L3H1 with mass 0.25 ± 0.00025 on position 7 (uniform "
                  "attention: 0.0625; threshold: 0.3 above it)"});
}

TEST_F(Verdict, AHeadNearTheThresholdIsNotKnownToBeASink) {
  sink(0, 0, 0.3625, 5);
  EXPECT_EQ(
      said("sink"),
      (Lines{
          "no head is clearly a sink: the strongest is L0H0 with mass 0.362 ± 0.00036 on position 5 (uniform "
          "attention: 0.0625; threshold: 0.3 above it)",
          "? not known for L0H0: mass within two standard errors of 0.3 above uniform; more samples would "
          "decide"}));
}

// ---- heads
// -------------------------------------------------------------------------------------------------------

TEST_F(Verdict, HeadsThatWriteLittleAreCandidatesUntilAblated) {
  head(0, 0, "head_output_rel", 0.2);
  head(5, 1, "head_output_rel", 0.002);
  EXPECT_EQ(
      said("head"),
      Lines{"? candidates, not decided: L5H1 (0.002) writes less than 0.01 of the residual stream's norm; "
            "not known whether the output needs it: run with --ablate"});
}

TEST_F(Verdict, WithoutCandidatesTheWeakestHeadIsNamed) {
  head(0, 0, "head_output_rel", 0.2);
  head(5, 1, "head_output_rel", 0.03);
  EXPECT_EQ(said("head"),
            Lines{"no head is dead: the weakest, L5H1, writes 0.03 ± 3e-05 of the residual stream's norm, "
                  "threshold 0.01, no baseline"});
}

TEST_F(Verdict, AblationDecidesAloneAndTogether) {
  for (const int l : {1, 2, 3}) head(l, 0, "head_output_rel", 0.001);
  output_kl("-head:L1H0", 2e-5);
  output_kl("-head:L2H0", 3e-5);
  output_kl("-head:L3H0", 0.2);
  output_kl("-heads:L1H0+L2H0", 6e-5);
  EXPECT_EQ(
      said("head"),
      (Lines{
          "L1H0, L2H0 are dead: taken out alone, each costs at most output_kl 3e-05 (epsilon 0.001; full: 0)",
          "these 2 heads can go together: output_kl 6e-05 ± 6e-08 (epsilon 0.001; at most 3e-05 alone; full: "
          "0)",
          "L3H0 writes little (below 0.01 of the residual stream's norm) but is needed: without it output_kl "
          "is at "
          "least 0.2 (epsilon 0.001; full: 0)"}));
}

TEST_F(Verdict, HeadsThatStandInForEachOtherCannotAllGo) {
  for (const int l : {1, 2}) head(l, 0, "head_output_rel", 0.001);
  output_kl("-head:L1H0", 2e-5);
  output_kl("-head:L2H0", 2e-5);
  output_kl("-heads:L1H0+L2H0", 0.5);
  EXPECT_EQ(said("head").back(),
            "these 2 heads cannot all go: together they cost output_kl 0.5 ± 0.0005 (epsilon 0.001; at "
            "most 2e-05 alone; full: 0), so they stand in for each other");
}

TEST_F(Verdict, AloneDoesNotSayTogether) {
  for (const int l : {1, 2}) head(l, 0, "head_output_rel", 0.001);
  output_kl("-head:L1H0", 2e-5);
  output_kl("-head:L2H0", 2e-5);
  EXPECT_EQ(said("head").back(), "? not known whether these 2 heads can go together: run with --ablate");
}

TEST_F(Verdict, AHeadThatWritesMuchAndIsNotMissedIsRedundant) {
  head(1, 0, "head_output_rel", 0.3);
  output_kl("-head:L1H0", 2e-5);
  EXPECT_EQ(said("head").back(),
            "L1H0 is redundant: taken out alone, it costs at most output_kl 2e-05 (epsilon 0.001; full: 0)");
}

TEST_F(Verdict, AnAblationNearEpsilonDecidesNothing) {
  head(1, 0, "head_output_rel", 0.001);
  output_kl("-head:L1H0", 0.001);
  EXPECT_EQ(
      said("head"),
      Lines{"? not known for L1H0 (0.001 ± 1e-06): output_kl within two standard errors of epsilon 0.001; "
            "more samples would decide"});
}

TEST_F(Verdict, LongListsOfHeadsAreCut) {
  for (int l = 0; l < 20; ++l) head(l, 0, "head_output_rel", 0.001);
  EXPECT_NE(said("head").front().find("L11H0 (0.001) and 8 more write less than 0.01"), std::string::npos);
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
  for (const Finding& f : judge(table_, spec_, limits_, shortest_))
    EXPECT_EQ(f.sentence.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace rankscope
