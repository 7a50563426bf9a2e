// What is said of tokens that become alike, and of texts too short to tell. A table is planted, the words
// must follow.
#include <algorithm>

#include "verdict/planted_table.h"

namespace rankscope {
namespace {

TEST_F(Verdict, ACollapseNamesItsLayersItsNumberItsThresholdAndItsBaseline) {
  spreads({0.9, 0.9, 0.9, 0.9, 0.9, 0.9}, "null:init");
  for (const int l : {0, 1, 5}) reads(l, 0.8);
  for (const int l : {2, 3, 4}) reads(l, 0.02 - 0.005 * (l == 3), 0.01);
  EXPECT_EQ(
      said("collapse"),
      Lines{
          "the tokens of a sample have collapsed to one in the MLPs of layers 2-4, and next to nothing there "
          "tells them apart: spread 0.015 ± 1.5e-05 in the MLP of layer 3, threshold 0.1, random "
          "initialisation "
          "0.9; nine of ten units differ by 0.01 ± 1e-05 of what they read or less, threshold 0.1"});
  const Finding f = all("collapse").front();
  EXPECT_EQ(f.layer, 3);
  EXPECT_EQ(f.value, 0.015);
  EXPECT_EQ(f.baseline, 0.9);
  EXPECT_EQ(f.threshold, 0.1);
}

// A few samples far from the rest make spread small, however much the tokens of each differ.
TEST_F(Verdict, TokensThatUnitsTellApartAreOnlyOutweighedByHowFarSamplesDiffer) {
  reads(0, 0.8);
  reads(1, 0.02, 0.3);
  EXPECT_EQ(
      said("collapse"),
      (Lines{"the tokens of a sample differ by next to nothing beside how far samples differ in the MLP of "
             "layer 1, though they are not alike: spread 0.02 ± 2e-05 in the MLP of layer 1, threshold 0.1, "
             "no baseline; nine of ten units differ by 0.3 ± 0.0003 of what they read or less, threshold 0.1",
             "? not known whether that is unusual: there is nothing to hold it against; scan with --null or "
             "--baseline DIR"}));
}

// What stands out is told from what is normal by the claims a sentence carries.
TEST_F(Verdict, ASentenceCarriesTheClaimsOfItsOwnPlaces) {
  reads(0, 0.8);
  reads(1, 0.02, 0.3);
  add("full", "blocks.0.hook_resid_mid", 0, -1, "spread_fisher", 0.02, "content");
  Row& near = add("full", "blocks.1.hook_resid_mid", 1, -1, "spread_fisher", 0.1, "content");
  near.stderr_ = 0.05;
  const std::vector<Finding> findings = all("collapse");
  const auto says = [](const Finding& f, std::string_view subject) {
    return std::any_of(f.claims.begin(), f.claims.end(), [&](const Claim& c) {
      return c.subject == subject && c.answer == Claim::Answer::yes;
    });
  };
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_TRUE(says(findings[0], "alike 1")) << findings[0].sentence;
  EXPECT_FALSE(says(findings[1], "alike 1")) << findings[1].sentence;  // not known whether that is unusual
  EXPECT_TRUE(says(findings[2], "unseen 0")) << findings[2].sentence;
  EXPECT_EQ(
      findings[2].sentence,
      "to first order, of the differences between tokens that reach the output from layer 0 next to nothing "
      "lies within samples: spread_fisher 0.02 ± 2e-05 in front of the MLP of layer 0, threshold 0.1");
  EXPECT_EQ(
      findings[3].sentence,
      "not known whether, to first order, more than next to nothing of the differences between tokens that "
      "reach the output from layer 1 lies within samples: within two standard errors of 0.1");
}

TEST_F(Verdict, WhatReachesTheOutputFromEveryLayerIsSaidSo) {
  reads(0, 0.8);
  add("full", "blocks.0.hook_resid_mid", 0, -1, "spread_fisher", 0.7, "content");
  EXPECT_EQ(
      said("collapse").back(),
      "to first order, of the differences between tokens that reach the output from every layer more than "
      "next to nothing lies within samples: the least is spread_fisher 0.7 ± 0.0007 in front of the MLP of "
      "layer 0, threshold 0.1");
}

TEST_F(Verdict, TokensThatDifferMayStillNotBeRead) {
  reads(0, 0.8, 0.004);
  EXPECT_EQ(said("collapse"),
            Lines{"nine units of ten differ by next to nothing between tokens in the MLP of layer 0: "
                  "spread 0.8 ± "
                  "0.0008 in the MLP of layer 0, threshold 0.1, no baseline; nine of ten units differ by "
                  "0.004 ± 4e-06 of what they read or less, threshold 0.1"});
}

// With --off tokens the output decides what is read, whatever the units of one layer make of it.
TEST_F(Verdict, WhatTheOutputLosesDecidesWhetherTokensAreRead) {
  for (const int l : {0, 1, 2, 3}) reads(l, l < 2 ? 0.02 : 0.8, l % 2 == 0 ? 0.7 : 0.01);
  for (const auto& [l, use] : {std::pair{0, 0.01}, {1, 0.9}, {2, 0.01}, {3, 0.9}})
    add("full", fmt::format("blocks.{}.hook_resid_mid", l), l, -1, "use", use, "content");
  const std::string costs = ", threshold 0.1, no baseline; their mean in their place costs ",
                    of = " of what one output for the whole corpus does, threshold 0.1",
                    units = "; nine of ten units differ by ",
                    or_less = " of what they read or less, threshold 0.1";
  EXPECT_EQ(
      said("collapse"),
      (Lines{
          "the tokens of a sample differ by next to nothing beside how far samples differ in the MLP of "
          "layer "
          "0, and the output hardly needs what tells them apart: spread 0.02 ± 2e-05 in the MLP of layer 0" +
              costs + "0.01 ± 1e-05" + of + units + "0.7 ± 0.0007" + or_less,
          "the tokens of a sample are nearly all alike in the MLP of layer 1, but the output reads what "
          "tells "
          "them apart: spread 0.02 ± 2e-05 in the MLP of layer 1" +
              costs + "0.9 ± 0.0009" + of + units + "0.01 ± 1e-05" + or_less,
          "? not known whether that is unusual: there is nothing to hold it against; scan with --null or "
          "--baseline DIR",
          "tokens differ, but the output hardly needs it in the MLP of layer 2: spread 0.8 ± 0.0008 in the "
          "MLP "
          "of layer 2" +
              costs + "0.01 ± 1e-05" + of,
          "the output needs what tells tokens apart in front of the MLPs of layers 1 and 3: use from 0.9 ± "
          "0.0009 "
          "(layer 1) to 0.9 ± 0.0009 (layer 3), threshold 0.1"}));
  reads(4, 0.02, 0.01);  // nor do units tell them apart
  add("full", "blocks.4.hook_resid_mid", 4, -1, "use", 0.01, "content");
  EXPECT_EQ(said("collapse").front().substr(0, 71),
            "the tokens of a sample have collapsed to one in the MLP of layer 4, and");
}

TEST_F(Verdict, AShareOfWhatOneOutputCostsIsToldInNatsWhereThereAreSome) {
  reads(0, 0.8);
  add("full", "blocks.0.hook_resid_mid", 0, -1, "use", 0.09, "content");
  add("full", "unembed.hook_out", -1, -1, "output_range", 3.8);
  const auto front = [&] { return said("collapse").front(); };
  EXPECT_EQ(front().find("nats"), std::string::npos) << front();
  spec_.output.kind = HeadKind::linear;
  EXPECT_NE(
      front().find("costs 0.09 ± 9e-05 of what one output for the whole corpus does (3.8 nats), threshold"),
      std::string::npos)
      << front();
}

TEST_F(Verdict, AUseNearItsThresholdIsNotKnown) {
  reads(0, 0.8);
  add("full", "blocks.0.hook_resid_mid", 0, -1, "use", 0.1, "content");
  EXPECT_EQ(said("collapse").front().substr(0, 11), "? not known");
}

TEST_F(Verdict, TokensThatDifferAlongOneDirectionAreAnotherCollapse) {
  reads(0, 0.8);
  reads(1, 0.8, 0.7, 1.04);
  EXPECT_EQ(
      said("collapse").back(),
      "dimensional collapse: most of what is read of tokens' differences lies along one direction in the MLP "
      "of "
      "layer 1, each unit over its own deviation: unit_rank 1.04 ± 0.001 in the MLP of layer 1, threshold 2");
}

// 26 channels that hold next to nothing move together, and six that hold all do not: channels are no readers.
TEST_F(Verdict, ChannelsThatMoveTogetherAreNoDimensionalCollapseWhereTheStreamHasMoreDirections) {
  reads(0, 0.8);
  const auto at_the_end = [&](const char* metric, double value, const char* tokens) {
    add("full", "ln_final.hook_normalized", kLayers, -1, metric, value, tokens);
  };
  at_the_end("spread", 0.8, "all");
  at_the_end("unit_rank", 1.5, "content");
  at_the_end("effective_rank_centered", 5.8, "content");
  EXPECT_EQ(said("collapse").front().substr(0, 20), "no layer collapses: ");
  EXPECT_EQ(said("collapse").size(), 1u);
  table_.rows.back().value = 1.2, table_.rows.back().stderr_ = 0.001;
  EXPECT_EQ(said("collapse").back().substr(0, 21), "dimensional collapse:");
}

// Seven channels of 60 beside constant ones of 1 name the token: they are massive, and left out of the
// residual.
TEST_F(Verdict, WhereMassiveChannelsTellTokensApartNothingHasCollapsed) {
  pre_norm();
  reads(0, 0.8);
  const auto at_the_end = [&](const char* metric, double value) {
    add("full", "blocks.5.hook_resid_post", 5, -1, metric, value, "content");
  };
  add("full", "ln_final.hook_normalized", 6, -1, "spread", 0.87, "all");
  at_the_end("residual_fro_rel_normed", 1e-8);
  at_the_end("normed_left_out", 0.97);
  EXPECT_EQ(said("collapse").front().substr(0, 20), "no layer collapses: ");
  table_.rows.pop_back();
  at_the_end("normed_left_out", 1e-8);
  EXPECT_EQ(said("collapse").front().substr(0, 67),
            "the tokens of a sample have collapsed to one at the final norm, and");
}

TEST_F(Verdict, OneDirectionThatTheBaselineHasTooIsNothingThatStandsOut) {
  reads(0, 0.8, 0.7, 1.04);
  reads(0, 0.8, 0.7, 1.04, "baseline");
  EXPECT_EQ(said("collapse").back().substr(0, 84),
            "as in baseline, most of what is read of tokens' differences lies along one direction");
  for (const Finding& f : all("collapse"))
    for (const Claim& claim : f.claims) EXPECT_NE(claim.answer, Claim::Answer::yes) << claim.subject;
}

TEST_F(Verdict, BesideADimensionalCollapseItIsNotSaidThatNoLayerCollapses) {
  reads(0, 0.8);
  reads(1, 0.8, 0.7, 1.04);
  EXPECT_EQ(said("collapse").front().substr(0, 28), "tokens do not become alike: ");
}

TEST_F(Verdict, AnMlpWhoseUnitsNeverDifferReadsNoneOfWhatTellsTokensApart) {
  reads(0, 0.8);
  reads(1, 0, 1e-8);
  residual("full", 1, 0.9);
  EXPECT_EQ(said("collapse").front().substr(0, 82),
            "nine units of ten differ by next to nothing between tokens in the MLP of layer 1: ");
}

// Of tokens that differ by 0.8 of their size a layer may read what the sample has in common alone.
TEST_F(Verdict, UnitsThatReadTheSampleAloneDoNotMakeItsTokensAlike) {
  reads(0, 0.02, 0.01);
  residual_behind(0, 0.8);
  EXPECT_EQ(said("collapse"),
            Lines{"nine units of ten differ by next to nothing between tokens in the MLP of layer 0: "
                  "spread 0.02 ± 2e-05 in the MLP of layer 0, threshold 0.1, no baseline; nine of ten units "
                  "differ by 0.01 ± 1e-05 of what they read or less, threshold 0.1"});
  table_.rows.back().value = 0.03;
  EXPECT_TRUE(said("collapse").front().starts_with("the tokens of a sample have collapsed to one"));
}

// Spread has no size: without units nothing says whether a difference of a thousandth is read.
TEST_F(Verdict, WithoutUnitsADifferenceThatIsNextToNothingIsNotKnownToBeRead) {
  const std::string site = "blocks.0.hook_resid_post";
  add("full", site, 0, -1, "spread", 0.6);
  residual_behind(0, 0.5);
  EXPECT_TRUE(said("collapse").front().starts_with("no layer collapses: the least is spread 0.6"));
  table_.rows.back().value = 0.0015;
  EXPECT_EQ(
      said("collapse"),
      Lines{"? not known whether what tells tokens apart is read after layer 0, where it is next to "
            "nothing of their size and no units say so; scan with --off tokens: their normed residual is "
            "0.0015 ± 0.0005 after layer 0, threshold 0.1"});
  EXPECT_EQ(all("collapse").front().value, 0.0015);  // the number that the sentence tells
  add("full", site, 0, -1, "spread", 0.02);
  table_.rows.erase(table_.rows.begin());
  EXPECT_TRUE(said("collapse").front().starts_with("the tokens of a sample are nearly all alike after"));
  table_.rows.front().value = 0.5;  // the residual: samples differ by far more, that is all
  EXPECT_TRUE(said("collapse")
                  .front()
                  .starts_with("the tokens of a sample differ by next to nothing beside how far samples "
                               "differ after layer 0, though "));
}

TEST_F(Verdict, AnOutputThatIsNotKnownToDifferDecidesNothingAtTheFinalNorm) {
  const std::string site = "ln_final.hook_normalized";
  add("full", site, kLayers, -1, "spread", 0.6);
  residual_behind(kLayers - 1, 0.02);
  EXPECT_TRUE(said("collapse").front().starts_with("? not known whether what tells tokens apart is read"));
  add("full", "unembed.hook_out", -1, -1, "output_range", 0.01).stderr_ = 0.01;  // epsilon_error is 0.01
  EXPECT_TRUE(said("collapse").front().starts_with("? not known whether what tells tokens apart is read"))
      << said("collapse").front();
  table_.rows.back().value = 2;
  EXPECT_TRUE(said("collapse").front().starts_with("no layer collapses")) << said("collapse").front();
}

TEST_F(Verdict, GainAndBiasOfTheFinalNormMakeNoDifferenceNextToNothing) {
  // --layers left the last block out: what the norm gave is measured, its bias included.
  const std::string site = "ln_final.hook_normalized";
  add("full", site, kLayers, -1, "spread", 0.6);
  add("full", site, kLayers, -1, "residual_fro_rel", 0.0111, "content");
  EXPECT_TRUE(said("collapse").front().starts_with("no layer collapses")) << said("collapse").front();
}

// Spread is one ratio of all samples together, which those that lie far apart decide.
TEST_F(Verdict, SamplesWhoseTokensAreAlikeAreCountedThoughAllTogetherAreNot) {
  reads(0, 0.6);
  residual_behind(0, 0.1);
  EXPECT_TRUE(said("collapse").front().starts_with("no layer collapses: "));
  const std::string block = "blocks.0.hook_resid_post", mlp = "blocks.0.mlp.hook_pre";
  samples(block, 0, "residual_fro_rel_normed", {0.01, 0.012, 0.9, 0.011}, "full", "content");
  EXPECT_EQ(
      said("collapse"),
      (Lines{"in 3 of 4 samples the tokens are nearly all alike after layer 0: their normed residual is "
             "0.012 or less, of the others 0.9 or more, threshold 0.1",
             "of all samples together no layer collapses: the least is spread 0.6 ± 0.0006 in the MLP of "
             "layer 0, threshold 0.1, no baseline; nine of ten units differ by 0.7 ± 0.0007 of what they "
             "read or less, threshold 0.1"}));
  // Small differences beside what tokens have in common may be all that is read.
  samples(mlp, 0, "unit_sd_rel_p90", {0.7, 0.02, 0.7, 0.7}, "full", "content");
  EXPECT_TRUE(said("collapse").front().starts_with("no layer collapses: "));  // one of two like it: no gap
  samples(mlp + "_linear", 0, "unit_sd_rel_p90", {0.01, 0.7, 0.01, 0.01}, "full", "content");
  EXPECT_TRUE(said("collapse").front().starts_with("no layer collapses: "));
}

TEST_F(Verdict, SamplesThatLieOnBothSidesOfTheThresholdWithoutAGapAreNoNews) {
  reads(0, 0.6);
  residual_behind(0, 0.1);
  samples("blocks.0.hook_resid_post", 0, "residual_fro_rel_normed", {0.08, 0.09, 0.11, 0.12}, "full",
          "content");
  EXPECT_TRUE(said("collapse").front().starts_with("no layer collapses: "));
  table_.samples.clear();  // and where all are alike, the rules above have spoken
  samples("blocks.0.hook_resid_post", 0, "residual_fro_rel_normed", {0.01, 0.01, 0.01, 0.01}, "full",
          "content");
  EXPECT_TRUE(said("collapse").front().starts_with("no layer collapses: "));
}

TEST_F(Verdict, AGatedMlpReadsWithBothOfItsMatrices) {
  reads(0, 0.02, 0.01, 1.01);
  const std::string other = "blocks.0.mlp.hook_pre_linear";
  add("full", other, 0, -1, "spread", 0.8);
  add("full", other, 0, -1, "unit_sd_rel_p90", 0.9, "content");
  add("full", other, 0, -1, "unit_rank", 14, "content");
  EXPECT_EQ(said("collapse"),
            Lines{"no layer collapses: the least is spread 0.8 ± 0.0008 in the MLP of layer "
                  "0, threshold 0.1, no baseline; nine of ten units differ by 0.9 ± 0.0009 of what they "
                  "read or less, threshold 0.1"});
}

// Everything is needed of an output that is nothing.
TEST_F(Verdict, WhereTheOutputIsTheSameEverywhereNothingIsSaidToBeNeeded) {
  reads(0, 0.8, 0.004);
  add("full", "blocks.0.hook_resid_mid", 0, -1, "use", 700, "content");
  Row& range = add("full", "unembed.hook_out", -1, -1, "output_range", 2);
  EXPECT_TRUE(said("collapse").back().starts_with("the output needs what tells tokens apart"));
  range.value = 1e-12, range.stderr_ = 1e-13;
  EXPECT_EQ(
      said("collapse"),
      (Lines{"nine units of ten differ by next to nothing between tokens in the MLP of layer 0: "
             "spread 0.8 ± 0.0008 in the MLP of layer 0, threshold 0.1, no baseline; nine of ten units "
             "differ by 0.004 ± 4e-06 of what they read or less, threshold 0.1",
             "the output is nearly the same at every token: one output for the whole corpus costs 1e-12 "
             "± 1e-13, epsilon 0.01; what it needs of what tells tokens apart says nothing"}));
  range.value = 0.01, range.stderr_ = 0.01;
  EXPECT_TRUE(said("collapse").back().starts_with("? not known whether the output differs from token to"));
}

TEST_F(Verdict, AttentionThatReadsTheSameFromEveryTokenIsNamed) {
  pre_norm();
  reads(0, 0.8);
  for (const int l : {1, 2}) {
    residual("full", l, l == 1 ? 0 : 0.9);
    add("full", fmt::format("blocks.{}.hook_resid_post", l - 1), l - 1, -1, "residual_fro_rel_normed", 0.9,
        "content");
  }
  EXPECT_EQ(said("collapse").front().substr(0, 58),
            "tokens differ, but attention reads none of it in layer 1: ");
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
  EXPECT_EQ(said("collapse"),
            Lines{"tokens are much alike in the MLP of layer 0, but more than 0.5 times as far apart as in "
                  "baseline: spread 0.05 ± "
                  "5e-05 in the MLP of layer 0, threshold 0.1, baseline 0.06; nine of ten units differ by "
                  "0.7 ± 0.0007 of what they read or less, threshold 0.1"});
}

TEST_F(Verdict, NoiseAcrossTheThresholdIsNotKnown) {
  reads(0, 0.095);
  table_.rows[0].stderr_ = 0.01;
  EXPECT_EQ(said("collapse").front(),
            "? not known in the MLP of layer 0, within two standard errors of a threshold; more samples "
            "would decide: spread 0.095 ± 0.01 in the MLP of layer 0, threshold 0.1, no baseline; nine of "
            "ten units differ by 0.7 ± 0.0007 of what they read or less, threshold 0.1");
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
  limits_.set("read", 0.7);  // which the units are too near
  reads(0, 0.4);
  EXPECT_EQ(said("collapse").front(),
            "the tokens of a sample are nearly all alike in the MLP of layer 0: spread 0.4 ± 0.0004 in the "
            "MLP of layer 0, threshold 0.45, no baseline; nine of ten units differ by 0.7 ± 0.0007 of what "
            "they read or less, threshold 0.7");
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

TEST_F(Verdict, RoundingAtTheFinalNormIsACollapseWithoutTheLastBlock) {
  pre_norm();
  reads(0, 0.8);  // --layers 0
  add("full", "ln_final.hook_normalized", kLayers, -1, "spread", 0.7, "all");
  add("full", "ln_final.hook_normalized", kLayers, -1, "residual_fro_rel", 0.4, "content");
  EXPECT_TRUE(said("collapse").front().starts_with("no layer collapses: "));
  table_.rows.back().value = 3e-8;
  EXPECT_EQ(
      said("collapse").front(),
      "the tokens of a sample have collapsed to one at the final norm, and next to nothing there tells them "
      "apart: their residual is the rounding floor (1e-06) at the final norm");
}

TEST_F(Verdict, TokensThatDifferByRoundingHaveCollapsedWhateverTheirSpreadSays) {
  for (int l = 0; l < 6; ++l) reads(l, 0.93, 2e-7, 13);
  // Most units of an MLP may be constant while tokens differ: that alone is no collapse.
  EXPECT_TRUE(said("collapse").front().starts_with("nine units of ten differ by next to nothing"));
  for (int l = 0; l < 6; ++l)
    add("full", fmt::format("blocks.{}.hook_resid_post", l), l, -1, "residual_fro_rel_normed", 3e-7,
        "content");
  EXPECT_EQ(
      said("collapse").front(),
      "the tokens of a sample have collapsed to one in the MLPs of layers 0-5, and next to nothing there "
      "tells them apart: their residual is the rounding floor (1e-06) in the MLP of layer 0");
}

}  // namespace
}  // namespace rankscope
