// What is said of the parts that hold the rank up. A table is planted, the words must follow.
#include "verdict/planted_table.h"

namespace rankscope {
namespace {

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

TEST_F(Verdict, APartIsJudgedInWhateverOrderItLeavesWithAHead) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-head:L0H0+skip", {0.3, 0.05, 0.001, 2e-5, 2e-5, 2e-5});
  ASSERT_EQ(said("support").size(), 1u);
  EXPECT_TRUE(said("support").front().starts_with("head:L0H0 and the skips hold the rank up"))
      << said("support").front();
  table_.rows.clear();
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-head:L0H0+head:L1H0", {0.3, 0.05, 0.001, 2e-5, 2e-5, 2e-5});
  residuals("-heads-mean:L0H0+L1H0", {0.3, 0.05, 0.001, 2e-5, 2e-5, 2e-5});
  EXPECT_EQ(said("support"),
            Lines{"head:L0H0 and head:L1H0 hold the rank up: without them the residual falls "
                  "below 0.1 by layer 1 and to 2e-05 by layer 3 (full: 0.5; threshold 0.1)"});
}

TEST_F(Verdict, ResidualsBelowTheRoundingFloorAreNotShown) {
  residuals("full", {0.5, 0.45, 0.43, 0.41, 0.42, 0.44});
  residuals("-skip", {0.3, 0.05, 0.001, 4.2e-7, 4.2e-7, 4.2e-7});
  EXPECT_EQ(said("support"),
            Lines{"the skips hold the rank up: without them the residual falls below 0.1 by layer 1 and to "
                  "the rounding floor (1e-06) by layer 3 (full: 0.41; threshold 0.1)"});
}

TEST_F(Verdict, WhereMassiveChannelsTellTokensApartWithoutAPartItIsNotKnownToHoldTheRankUp) {
  const auto at = [&](const char* variant, int l, const char* metric, double value) {
    add(variant, fmt::format("blocks.{}.hook_resid_post", l), l, -1, metric, value, "content");
  };
  for (const int l : {0, 1}) {
    at("full", l, "residual_fro_rel_normed", 0.5);
    at("-skip", l, "residual_fro_rel_normed", l == 0 ? 0.4 : 1e-8);
    at("-skip", l, "normed_left_out", l == 0 ? 0 : 0.94);
  }
  EXPECT_EQ(
      said("support"),
      Lines{"? not known whether the skips hold the rank up: without them the normed residual is the "
            "rounding floor (1e-06) at layer 1, but the massive channels that it leaves out tell tokens "
            "apart there: their own is 0.94"});
}

TEST_F(Verdict, TokensThatUnderflowAreNotAlike) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-norm", {0.5, 0.5, 0.5, 0, 0, 0});
  const auto size = [&](int l, double common, double differ) {
    const std::string site = fmt::format("blocks.{}.hook_resid_post", l);
    add("-norm", site, l, -1, "offset_fro", common, "content");
    add("-norm", site, l, -1, "residual_fro", differ, "content");
  };
  size(1, 1, 1e-20);  // alike, and not small
  size(4, 0, 0);      // zeros, as weights of zeros give
  EXPECT_TRUE(said("support").front().starts_with("the norms hold the rank up: ")) << said("support").front();
  size(2, 2e-21, 3e-21);
  EXPECT_EQ(
      said("support").front(),
      "? not known whether the norms hold the rank up: without them activations shrink to 3.61e-21 at "
      "blocks.2.hook_resid_post, and what is far smaller is zero; --dtype float64 follows them further");
}

TEST_F(Verdict, APartThatCanGoDoesNotHoldTheRankUp) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-norm", {0.6, 0.6, 0.6, 0.6, 0.6, 0.48});
  EXPECT_EQ(said("support"),
            Lines{"the norms do not hold the rank up: without them, and nothing else removed, 0.96 of the "
                  "full network's residual is left at layer 5 (0.48 ± 0.00048 against 0.5 ± 0.0005; "
                  "collapse_ratio 0.5, kept 0.8), times 0.969 a layer"});
}

TEST_F(Verdict, APartWithoutWhichRankIsLostHoldsItUpThoughTheResidualStands) {
  residuals("full", {0.8, 0.8, 0.8, 0.8, 0.8, 0.8});
  residuals("-skip", {0.7, 0.7, 0.6, 0.6, 0.55, 0.51});
  for (int l = 0; l < kLayers; ++l)
    for (const char* variant : {"full", "-skip"})
      add(variant, fmt::format("blocks.{}.hook_resid_post", l), l, -1, "effective_rank_centered_rel_trimmed",
          variant[0] == 'f' ? 0.64 : 0.64 * std::pow(0.75, l), "content");
  EXPECT_EQ(said("support"),
            Lines{"the skips hold most of the rank up: without them, and nothing else removed, 0.237 of the "
                  "full network's centered effective rank is left at layer 5 (0.152 ± 0.00015 against 0.64 ± "
                  "0.00064; collapse_ratio 0.5, kept 0.8), times 0.75 a layer"});
}

TEST_F(Verdict, APartWithoutWhichNextToNoRankIsLeftHoldsNearlyAllOfItUp) {
  residuals("full", {0.8, 0.8, 0.8, 0.8, 0.8, 0.8});
  residuals("-skip", {0.7, 0.7, 0.6, 0.6, 0.55, 0.51});
  for (const char* variant : {"full", "-skip"})
    add(variant, "blocks.5.hook_resid_post", 5, -1, "effective_rank_centered_rel_trimmed",
        variant[0] == 'f' ? 0.5 : 0.03, "content");
  EXPECT_EQ(said("support").front().substr(0, 91),
            "the skips hold nearly all of the rank up: without them, and nothing else removed, 0.06 of t");
}

// A geometric mean near zero has an error near zero, though one sample of four made it.
TEST_F(Verdict, SamplesThatDifferByPowersOfTenDecideByTheirLogarithms) {
  pre_norm();
  spec_.blocks.resize(1);
  const std::string site = "blocks.0.hook_resid_post";
  Row& full = add("full", site, 0, -1, "residual_fro_rel_normed", 0.907, "content");
  full.stderr_ = 0.025, full.n = 4;
  Row& without = add("-attention-skip", site, 0, -1, "residual_fro_rel_normed", 0.0258, "content");
  without.stderr_ = 0.089, without.n = 4;
  samples(site, 0, "residual_fro_rel_normed", {0.9, 0.9, 0.9, 0.93}, "full", "content");
  samples(site, 0, "residual_fro_rel_normed", {1e-7, 0.85, 0.86, 0.88}, "-attention-skip", "content");
  EXPECT_EQ(said("support"),
            Lines{"? not known whether the attention skip holds the rank up: without it, and nothing else "
                  "removed, 0.0284 of the full network's normed residual is left at the final norm (0.0258 ± "
                  "0.089 against 0.907 ± 0.025; collapse_ratio 0.5, less in 1 of 4 samples, kept 0.8)"});
}

TEST_F(Verdict, AFallThatIsNotOneOfEverySampleSaysOfHowMany) {
  pre_norm();
  spec_.blocks.resize(1);
  const std::string site = "blocks.0.hook_resid_post";
  add("full", site, 0, -1, "residual_fro_rel_normed", 0.9, "content");
  add("-skip", site, 0, -1, "residual_fro_rel_normed", 1e-4, "content");
  EXPECT_EQ(said("support"), Lines{"the skips hold the rank up: without them the normed residual falls to "
                                   "0.0001 by the final norm (full: 0.9; threshold 0.1)"});
  samples(site, 0, "residual_fro_rel_normed", {0.9, 0.9, 0.9, 0.9}, "full", "content");
  samples(site, 0, "residual_fro_rel_normed", {1e-7, 1e-7, 1e-7, 0.5}, "-skip", "content");
  EXPECT_EQ(said("support"), Lines{"the skips hold the rank up: without them the normed residual falls to "
                                   "0.0001 by the final norm, below the threshold in 3 of 4 samples (full: "
                                   "0.9; threshold 0.1)"});
}

TEST_F(Verdict, AChangeALayerCountsTheLayersThatWereNotLookedAt) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residual("-norm", 0, 0.4);
  residual("-norm", 5, 0.2);
  EXPECT_TRUE(said("support").front().ends_with(", times 0.871 a layer"))  // 2^(-1 / 5)
      << said("support").front();
}

// A ratio with what rounding leaves of the full network is no share of anything.
TEST_F(Verdict, PlacesOfRoundingTellNoChangeALayer) {
  residuals("full", {0.5, 0.5, 1e-8, 1e-8, 0.5, 0.5});
  residuals("-norm", {0.48, 0.48, 0.48, 0.48, 0.48, 0.48});
  EXPECT_TRUE(said("support").front().ends_with(", times 1 a layer")) << said("support").front();
}

TEST_F(Verdict, AHeadThatTheRankRestsOnIsNamedAndOthersAreNot) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-head:L0H0", {0.01, 0.01, 0.01, 0.01, 0.01, 0.01});
  residuals("-head:L1H0", {0.5, 0.49, 0.48, 0.48, 0.48, 0.48});
  EXPECT_EQ(said("support"),
            Lines{"head:L0H0 holds the rank up: without it the residual falls to 0.01 by layer 0 (full: 0.5; "
                  "threshold 0.1)"});
}

TEST_F(Verdict, OfOnePlaceNoChangeALayerIsSaid) {
  residuals("full", {0.5});
  residuals("-norm", {0.48});
  EXPECT_EQ(said("support").front().find("a layer"), std::string::npos) << said("support").front();
}

TEST_F(Verdict, BetweenTheThresholdsASharesMeaningIsNotKnown) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-position", {0.33, 0.33, 0.33, 0.33, 0.33, 0.33});
  EXPECT_EQ(all("support").front().known, false);
}

TEST_F(Verdict, PartsThatLeaveTogetherAreNamedTogether) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-mlp", {0.6, 0.6, 0.001, 0.001, 0.001, 0.001});
  EXPECT_EQ(said("support").front().substr(0, 52), "the MLP and the norm behind it hold the rank up: wit");
}

TEST_F(Verdict, WhatRisesAgainWithoutAPartIsNotHeldUpToTheEnd) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-mlp-skip", {0.6, 0.05, 0.6, 0.6, 0.6, 0.45});
  residuals("-norm", {0.5, 0.2, 0.5, 0.5, 0.5, 0.45});
  // Above the threshold again, but with less than 0.8 of the full network's.
  residuals("-position", {0.5, 0.05, 0.3, 0.3, 0.3, 0.3});
  EXPECT_EQ(
      said("support"),
      (Lines{"the MLP skip holds the rank up at layer 1, and not to the end: without it the residual is "
             "0.05 there (full: 0.5; threshold 0.1) and 0.45 at layer 5 (full: 0.5; kept 0.8)",
             "the norms hold most of the rank up at layer 1, and not to the end: without them, and "
             "nothing else removed, 0.4 of the full network's residual is left at layer 1 (0.2 ± 0.0002 "
             "against 0.5 ± 0.0005; collapse_ratio 0.5, kept 0.8), and 0.9 at layer 5",
             "the positions hold the rank up: without them the residual falls to 0.05 by layer 1 (full: "
             "0.5; threshold 0.1)"}));
}

TEST_F(Verdict, WhatRisesAgainInRankAloneIsStillHeldUp) {
  residuals("full", {0.9, 0.9, 0.9, 0.9, 0.9, 0.9});
  residuals("-mlp-skip", {0.9, 0.9, 0.9, 0.9, 0.9, 0.25});
  for (int l = 0; l < kLayers; ++l)
    for (const char* variant : {"full", "-mlp-skip"})
      add(variant, fmt::format("blocks.{}.hook_resid_post", l), l, -1, "effective_rank_centered_rel_trimmed",
          variant[0] == 'f' || l == 5 ? 0.6 : 0.1, "content");
  EXPECT_TRUE(said("support").front().starts_with("the MLP skip holds most of the rank up: "))
      << said("support").front();
}

TEST_F(Verdict, TwoResidualsThatAThresholdPartsAreHeldAgainstEachOther) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.102});
  residuals("-mlp-skip", {0.5, 0.5, 0.5, 0.5, 0.5, 0.097});
  EXPECT_TRUE(said("support").front().starts_with(
      "the MLP skip does not hold the rank up: without it, and nothing else removed, 0.951 of the full "
      "network's residual is left at layer 5"))
      << said("support").front();
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
                                   "nothing else removed, 0.6 of the full network's residual is left at "
                                   "layer 0 (0.3 ± 0.2 against 0.5 ± 0.0005; collapse_ratio 0.5, kept 0.8)"});
}

TEST_F(Verdict, AVariantWithoutResidualsDecidesNothing) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  output_kl("-skip", 3);
  EXPECT_EQ(said("support"),
            Lines{"? not known whether the skips hold the rank up: no residual was measured with and "
                  "without"});
}

// What the norm's gain and bias do to the residual is a matter of how the network is written down.
TEST_F(Verdict, TheResidualBehindTheNormWithoutItsGainAndBiasDecidesWhereItIsMeasured) {
  pre_norm();
  residuals("full", {0.07, 0.07, 0.07, 0.07, 0.07, 0.07, 0.07});
  residuals("-skip", {0.07, 0.03, 0.001, 0.001, 0.001, 0.001, 0.001});
  for (int l = 0; l < kLayers; ++l)
    for (const char* variant : {"full", "-skip"})
      add(variant, fmt::format("blocks.{}.hook_resid_post", l), l, -1, "residual_fro_rel_normed",
          variant[0] == 'f' ? 0.8 : 0.8 * std::pow(0.3, l + 1), "content");
  EXPECT_EQ(said("support"),
            Lines{"the skips hold the rank up: without them the normed residual falls below 0.1 by layer 2 "
                  "and to 0.000583 by the final norm (full: 0.8; threshold 0.1)"});
}

TEST_F(Verdict, AVariantThatOverflowsIsNotJudgedByTheLayersBeforeIt) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-norm", {0.5, 0.49, 0.48});
  not_finite_ = {{"-norm", "blocks.3.hook_resid_post, sample 0, token 0"}};
  EXPECT_EQ(
      said("support"),
      Lines{"? not known whether the norms hold the rank up: without them activations are NaN, Inf or too "
            "large for their squares at blocks.3.hook_resid_post, sample 0, token 0; --dtype float64 "
            "tells whether that is an overflow"});
}

// --layers leaves the last block out: its normed residual is not there, what the final norm gave is.
TEST_F(Verdict, RoundingAtTheFinalNormIsSeenWithoutTheLastBlock) {
  pre_norm();
  for (const char* variant : {"full", "-skip"}) {
    add(variant, "blocks.0.hook_resid_post", 0, -1, "residual_fro_rel_normed", 0.6, "content");
    add(variant, "blocks.0.ln1.hook_normalized", 0, -1, "effective_rank_centered_rel_trimmed", 0.5,
        "content");
    const bool full = variant[0] == 'f';
    add(variant, "ln_final.hook_normalized", kLayers, -1, "effective_rank_centered_rel_trimmed",
        full ? 0.69 : 0.1, "content");
    for (const char* metric : {"residual_fro_rel", "residual_fro_rel_trimmed"})
      add(variant, "ln_final.hook_normalized", kLayers, -1, metric, full ? 3e-8 : 1e-7, "content");
  }
  EXPECT_EQ(
      said("support"),
      Lines{"? not known whether the skips hold the rank up: the full network is itself below 0.1 where "
            "the one without them is (the final norm: 3e-08 and the rounding floor (1e-06))"});
  for (Row& r : table_.rows)
    if (r.variant == "full" && r.metric.str().starts_with("residual_fro_rel") && r.layer == kLayers)
      r.value = 0.5;
  EXPECT_TRUE(said("support").front().starts_with("the skips hold the rank up: ")) << said("support").front();
}

TEST_F(Verdict, TheRankOfRoundingIsNoRank) {
  residuals("full", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  residuals("-skip", {0.5, 0.5, 0.5, 0.5, 0.5, 0.45});
  for (const char* variant : {"full", "-skip"}) {
    add(variant, "blocks.5.hook_resid_post", 5, -1, "effective_rank_centered_rel_trimmed",
        variant[0] == 'f' ? 0.5 : 0.45, "content");
    add(variant, "blocks.4.hook_resid_post", 4, -1, "effective_rank_centered_rel_trimmed",
        variant[0] == 'f' ? 0.5 : 0.01, "content");
  }
  EXPECT_TRUE(said("support").front().starts_with("the skips hold nearly all of the rank up"));
  Row* rounding = nullptr;
  for (Row& r : table_.rows)
    if (r.variant == "-skip" && r.metric == "residual_fro_rel_trimmed" && r.layer == 4) rounding = &r;
  ASSERT_NE(rounding, nullptr);
  rounding->value = 1e-8;
  for (const char* variant : {"full", "-skip"})
    for (const int l : {3, 4, 5})
      add(variant, fmt::format("blocks.{}.hook_resid_post", l), l, -1, "residual_fro_rel_normed", 0.5,
          "content");
  EXPECT_TRUE(said("support").front().starts_with("the skips do not hold the rank up"))
      << said("support").front();
}

}  // namespace
}  // namespace rankscope
