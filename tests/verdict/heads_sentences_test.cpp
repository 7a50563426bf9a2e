// What is said of heads that could go. A table is planted, the words must follow.
#include "verdict/planted_table.h"

namespace rankscope {
namespace {

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
  EXPECT_EQ(said("head"),
            Lines{"no head writes next to nothing: the weakest, L5H1, varies by 0.03 ± 3e-05 of what the "
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
                                 "most output_kl 3e-05 (epsilon 0.001)",
                                 "L2H0 is constant on this text: its mean in its place costs at most "
                                 "output_kl 3e-05 (epsilon 0.001)",
                                 "L3H0 is needed, though varying by less than 0.01 of the stream: with its "
                                 "mean in its place the cost is "
                                 "at least output_kl 0.2 (epsilon 0.001)",
                                 "? not known whether the output stays without these 2 heads together: run "
                                 "with --ablate"}));
}

// Costs in KL are quadratic: four times the cost of one head is what two that do the same cost together. Only
// what lies above the cost of the added effects is standing in.
TEST_F(Verdict, CostsThatAddUpAreNoStandingInAndEffectsThatDoNotAre) {
  for (const int l : {1, 2}) {
    head(l, 0, "head_varied_rel", 0.001);
    output_kl(fmt::format("-head-mean:L{}H0", l), 0.0005);
    output_kl(fmt::format("-head-bare:L{}H0", l), 0.0005);
  }
  output_kl("-heads-mean:L1H0+L2H0", 0.002);
  Row& more = add("-heads-mean:L1H0+L2H0", "unembed.hook_out", -1, -1, "stand_in", 0.00001);
  const Lines added = said("head");
  EXPECT_EQ(
      added[added.size() - 2],
      "the output does not stay without L1H0, L2H0 together, though it does without each: their means in "
      "their places cost output_kl 0.002 ± 2e-06 (epsilon 0.001)");
  EXPECT_EQ(added.back(),
            "of 1 pair tried of them none stand in for each other: a pair costs at most 1e-05 ± 1e-08 more "
            "than its effects add up to (epsilon 0.001)");
  more.value = 0.5, more.stderr_ = 0.05;
  EXPECT_EQ(said("head").back(),
            "L1H0+L2H0 stand in for each other: each alone can go, and together they cost at most 0.5 ± 0.05 "
            "more than their "
            "effects add up to (epsilon 0.001)");
  more.stderr_ = 0.4;
  EXPECT_EQ(said("head").back(),
            "? not known whether L1H0+L2H0 stand in for each other: too near epsilon for their errors; more "
            "samples would decide");
}

TEST_F(Verdict, AHeadThatCouldWriteAndDoesNotIsDormantOnThisText) {
  head(1, 0, "head_varied_rel", 0.001);
  head(1, 0, "head_able_rel", 0.4);
  output_kl("-head-mean:L1H0", 2e-5);
  output_kl("-head-bare:L1H0", 2e-5);
  EXPECT_EQ(
      said("head"),
      Lines{"L1H0 is dormant on this text, writing nothing that matters though able to write 0.4 of what the "
            "stream varies or more (threshold 0.03): its mean in its place costs at most output_kl 2e-05 "
            "(epsilon "
            "0.001)"});
}

TEST_F(Verdict, HeadsThatWriteWhatOthersWriteAreNamedHoweverMuchTheyWrite) {
  head(0, 0, "head_varied_rel", 0.4);
  head(0, 0, "head_predicted", 0.999);
  head(0, 1, "head_predicted", 0.1);
  EXPECT_EQ(said("head").back(),
            "L0H0 writes little that other heads of the layer do not write, up to sizes and signs: the "
            "nearest is L0H0 with R^2 0.999 ± 0.001 (threshold 0.9; tokens far from the rest left out)");
}

TEST_F(Verdict, HeadsTooNearAThresholdAreNotKnown) {
  head(0, 0, "head_varied_rel", 0.0101).stderr_ = 0.001;
  head(0, 0, "head_predicted", 0.9);
  EXPECT_EQ(
      said("head"),
      (Lines{"? not known whether every head writes more than next to nothing: the weakest, L0H0, varies "
             "by 0.0101 ± 0.001 of what the stream varies, threshold 0.01, no baseline",
             "? not known whether L0H0 writes what others of the layer write: the nearest is L0H0 with R^2 "
             "0.9 ± 0.0009 (threshold 0.9; tokens far from the rest left out); too near 0.9 for their "
             "errors; more "
             "samples would decide"}));
}

// Three standard errors: of 8 samples as good as two of many, of 3 not.
TEST_F(Verdict, FewSamplesNeedMoreStandardErrorsToDecide) {
  Row& cost = add("rank:qk=8", "unembed.hook_out", -1, -1, "output_kl", 0.0004);
  cost.stderr_ = 0.0002;
  EXPECT_NE(said("rank").back().find("the output stays"), std::string::npos);
  cost.n = 3;
  EXPECT_NE(said("rank").back().find("not known whether that is more than epsilon"), std::string::npos);
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

// An output that hardly changes may still be surer of another token.
TEST_F(Verdict, ACutIsHeldAgainstTheLossOfTheTextToo) {
  spec_.output.kind = HeadKind::linear;
  output_kl("rank:ov=8", 0.00024);
  output_kl("rank:ov=16", 0.00001);
  samples("unembed.hook_out", -1, "nll", {2, 2.1, 2.2, 2.3});
  samples("unembed.hook_out", -1, "nll", {2.04, 2.13, 2.25, 2.34}, "rank:ov=8");
  samples("unembed.hook_out", -1, "nll", {2, 2.1, 2.2, 2.3}, "rank:ov=16");
  EXPECT_EQ(
      said("rank"),
      (Lines{"? not known for the QK maps: no qk_effective_rank was measured",
             "? not known for the OV maps: no ov_effective_rank was measured",
             "cutting every head to ov=8 costs output_kl 0.00024 ± 2.4e-07, loss +0.04 ± 0.0041 (epsilon "
             "0.001; full: 0): the output stays, and the loss rises",
             "cutting every head to ov=16 costs output_kl 1e-05 ± 1e-08, loss +0 (epsilon 0.001; full: "
             "0): the output stays",
             "16 is the smallest rank within epsilon 0.001 of the output, of 8, 16 tried for every "
             "head's ov map"}));
}

TEST_F(Verdict, HeadsThatWereTakenOutAreAnsweredFor) {
  output_kl("-head:L0H0", 2.8);
  output_kl("-head:L0H0+head:L1H1", 0.0001);
  output_kl("-head:L0H0+mlp", 5);  // other parts are gone, too
  add("-head:cross.L0H1", "unembed.hook_out", -1, -1, "output_kl", 0.001).stderr_ = 0.001;
  const Lines lines = said("head");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "without L0H0 output_kl is 2.8 ± 0.0028 (epsilon 0.001): the output changes");
  EXPECT_EQ(lines[1], "without L0H0, L1H1 output_kl is 0.0001 ± 1e-07 (epsilon 0.001): the output stays");
  EXPECT_EQ(
      lines[2],
      "? without cross.L0H1 output_kl is 0.001 ± 0.001 (epsilon 0.001): not known whether it stays, too "
      "near epsilon for their errors; more samples would decide");
}

TEST_F(Verdict, FewSamplesOfCopiedHeadsAreNotPassedOver) {
  head(0, 0, "head_varied_rel", 0.2);
  head(0, 0, "head_predicted", 0.99).n = 2;
  EXPECT_EQ(said("head").back(),
            "? not known whether heads write what others of their layer write: 2 samples decide nothing "
            "(few_samples 4)");
}

TEST_F(Verdict, LongListsOfHeadsAreCut) {
  for (int l = 0; l < 20; ++l) head(l, 0, "head_varied_rel", 0.001);
  EXPECT_NE(said("head").front().find("L11H0 (0.001) and 8 more vary by less than 0.01"), std::string::npos);
}

TEST_F(Verdict, HeadsWithoutANumberAreNotCountedAsFine) {
  for (const int l : {0, 1})
    for (const int h : {0, 1}) head(l, h, "head_output_rel", 0.5);
  for (const int h : {0, 1}) {
    head(0, h, "head_varied_rel", 0.39 + 0.1 * h);
    head(0, h, "head_predicted", 0.2);
  }
  EXPECT_EQ(
      said("head"),
      (Lines{"no head writes next to nothing, of the 2 of 4 heads that have a number: the weakest, L0H0, "
             "varies by 0.39 ± 0.00039 of what the stream varies, threshold 0.01, no baseline",
             "? not known for L1H0, L1H1: the tokens in front of them differ by rounding alone; --dtype "
             "float64 tells what is below that",
             "no head writes what the others of its layer write, of the 2 of 4 heads that have a number: the "
             "nearest is L0H0 with R^2 0.2 ± 0.0002 (threshold 0.9; tokens far from the rest left out)"}));
}

}  // namespace
}  // namespace rankscope
