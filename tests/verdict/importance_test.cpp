// The sentences about what parts are worth, pinned: a table is planted, the words must follow.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "verdict/verdict.h"

namespace rankscope {
namespace {

class ImportanceRule : public testing::Test {
 protected:
  void SetUp() override {
    BlockSpec block = classic_block(NormPlace::pre, {NormKind::layer}, {});
    block.attention().heads = 3;
    spec_.blocks.assign(2, block);
    spec_.output.kind = HeadKind::linear;
  }
  void add(const std::string& metric, double value, double error, int layer = -1, int head = -1,
           int depth = -1, const std::string& variant = "full") {
    table_.rows.push_back({variant, "unembed.hook_out", layer, head, metric, value, error, 8, depth, "all"});
  }
  std::vector<std::string> said() const {
    std::vector<std::string> out;
    for (const Finding& f : judge(table_, spec_, {}, {40}))
      if (f.topic == "worth") out.push_back((f.known ? "" : "? ") + f.sentence);
    return out;
  }
  ModelSpec spec_;
  ResultTable table_;
};

TEST_F(ImportanceRule, SaysNothingWhereNothingWasTakenOut) { EXPECT_TRUE(said().empty()); }

TEST_F(ImportanceRule, CountsHeadsThatAreNeededFreeAndNotKnown) {
  add("head_zero_kl", 0.4, 0.01, 0, 0);
  add("head_zero_loss", 0.3, 0.02, 0, 0);
  add("head_zero_kl", 0.00001, 0.000001, 0, 1);
  add("head_zero_loss", -0.00002, 0.00001, 0, 1);
  add("head_zero_kl", 0.0011, 0.001, 1, 0);
  add("head_zero_kl", 0.2, 0.01, 1, 1);
  EXPECT_EQ(
      said(),
      std::vector<std::string>{
          "of 4 of 6 heads, each alone writing zero with its share of the biases on 8 samples, the output "
          "needs "
          "2, 1 "
          "cost less than epsilon 0.001 "
          "and 1 are not known; most in nats: L0H0 0.4 ± 0.01 (loss +0.3 ± 0.02), L1H1 0.2 ± 0.01, L1H0 "
          "0.0011 ± 0.001; least: L0H1 1e-05 ± 1e-06 (loss -2e-05 ± 1e-05)"});
}

TEST_F(ImportanceRule, AHeadWhoseAbsenceRaisesTheLossAloneIsNeeded) {
  add("head_zero_kl", 0.00001, 0.000001, 0, 1);
  add("head_zero_loss", 2.47, 0.09, 0, 1);
  EXPECT_EQ(said(), std::vector<std::string>{
                        "of 1 of 6 heads, each alone writing zero with its share of the biases on 8 samples, "
                        "the output needs 1 (1 for the loss of the text alone), 0 cost less than epsilon "
                        "0.001; most in nats: L0H1 1e-05 ± 1e-06 (loss +2.47 ± 0.09)"});
}

TEST_F(ImportanceRule, HeadsThatTheLossAloneNeedsAreTestedTogether) {
  // Of a hundred, one is 3.6 standard errors above epsilon: by chance alone one of two hundred is, with 7
  // degrees of freedom.
  for (BlockSpec& b : spec_.blocks) b.attention().heads = 50;
  for (int h = 0; h < 100; ++h) {
    add("head_zero_kl", 0.00001, 0.000001, h / 50, h % 50);
    add("head_zero_loss", h == 0 ? 0.0046 : 0.0012, 0.001, h / 50, h % 50);
  }
  ASSERT_EQ(said().size(), 1u);
  EXPECT_NE(said().front().find("the output needs 0, 0 cost less than epsilon 0.001 and 100 are not known"),
            std::string::npos)
      << said().front();
}

TEST_F(ImportanceRule, SaysWhatOtherPartsAreWorth) {
  add("mlp_mean_kl", 0.4, 0.01, 0);
  add("mlp_mean_loss", 0.3, 0.02, 0);
  add("layer_zero_kl", 0.00001, 0.000001, 1);
  add("expert_zero_kl", 0.5, 0.01, 1, 7);
  EXPECT_EQ(
      said(),
      (std::vector<std::string>{
          "of 1 MLP, each alone writing its mean over all tokens on 8 samples, the output needs 1, 0 cost "
          "less than epsilon 0.001; most in nats: that of layer 0 0.4 ± 0.01 (loss +0.3 ± 0.02)",
          "of 1 layer, each alone left out on 8 samples, the output needs 0, 1 cost less than epsilon 0.001; "
          "most in nats: layer 1 1e-05 ± 1e-06",
          "of 1 expert, each alone writing zero on 8 samples, the output needs 1, 0 cost less than epsilon "
          "0.001; most in nats: L1E7 0.5 ± 0.01"}));
}

TEST_F(ImportanceRule, ReadsThePruningCurveUpToEpsilon) {
  for (const auto& [heads, kl] : {std::pair(2, 0.0002), {4, 0.05}, {6, 2.0}}) {
    add("prune_kl", kl, kl / 100, -1, -1, heads);
    add("prune_loss", kl / 2, kl / 100, -1, -1, heads);
    add("prune_parameters", 100.0 * heads, kNone, -1, -1, heads);
    add("prune_cache", heads / 12.0, kNone, -1, -1, heads);
  }
  EXPECT_EQ(said(),
            std::vector<std::string>{
                "least important first, 2 of 6 heads can go together on 8 samples (epsilon 0.001, for the "
                "loss, too): 2 out "
                "cost 0.0002 ± "
                "2e-06, loss +0.0001 ± 2e-06, save 200 parameters and 16.7% of the cache of keys and "
                "values; 4 out cost 0.05 ± 0.0005, loss +0.025 ± 0.0005, save 400 parameters and 33.3% of "
                "the cache of keys and values"});
}

TEST_F(ImportanceRule, SaysWhetherTheFirstPointOfThePruningCurveIsTooDearOrNotKnown) {
  add("prune_kl", 0.2, 0.01, -1, -1, 1);
  EXPECT_EQ(
      said(),
      std::vector<std::string>{
          "not even the 1 least important of 1 heads can go on 8 samples (epsilon 0.001): 1 out cost 0.2 ± "
          "0.01"});
  table_.rows.back().stderr_ = kNone;
  EXPECT_EQ(
      said(),
      std::vector<std::string>{
          "? not known whether the 1 least important of 1 heads can go on 8 samples (epsilon 0.001): 1 out "
          "cost 0.2"});
}

TEST_F(ImportanceRule, AHeadIsNeededForTheLossWhereItsOutputIsNotKnown) {
  add("head_zero_kl", 0.0441, 0.034, 0, 0);
  add("head_zero_loss", 0.508, 0.075, 0, 0);
  add("head_zero_kl", 0.0017, 0.001, 0, 1);
  add("head_zero_loss", 0.0002, 0.00001, 0, 1);
  const std::string sentence = said().front();
  EXPECT_NE(
      sentence.find("the output needs 1 (1 for the loss of the text alone), 0 cost less than epsilon 0.001 "
                    "and 1 are not known; most"),
      std::string::npos)
      << sentence;
}

TEST_F(ImportanceRule, NamesStandInsOnlyWhereTheInteractionIsRealAndLargeEnough) {
  add("stand_in", 0.5, 0.01, -1, -1, -1, "pair:L0H0+L0H1");
  add("stand_in", 0.00001, 0.0000001, -1, -1, -1, "pair:L0H0+L1H1");
  add("stand_in", 0.3, 0.4, -1, -1, -1, "pair:L0H2+L1H1");
  EXPECT_EQ(said(),
            (std::vector<std::string>{
                "L0H0+L0H1 stand in for each other: each alone can go, and together they cost at most "
                "0.5 ± 0.01 more than their effects add up to (epsilon 0.001)",
                "? not known whether L0H2+L1H1 stand in for each other: too near epsilon for their errors; "
                "more samples would decide"}));
}

TEST_F(ImportanceRule, SaysWhereNoPairInteracts) {
  add("stand_in", 0.00001, 0.0000001, -1, -1, -1, "pair:L0H0+L1H1");
  EXPECT_EQ(said(), (std::vector<std::string>{
                        "of 1 pair tried of the heads that seem free alone none stand in for each other: a "
                        "pair costs at most 1e-05 ± 1e-07 more than its effects add up to (epsilon 0.001)"}));
}

// An output that hardly changes may still be surer of another token.
TEST_F(ImportanceRule, NamesPairsThatStandInForEachOtherForTheLossAlone) {
  add("stand_in", 0.0003, 0.00001, -1, -1, -1, "pair:L0H0+L0H1");
  add("stand_in_loss", 0.07, 0.006, -1, -1, -1, "pair:L0H0+L0H1");
  add("stand_in", 0.0004, 0.00001, -1, -1, -1, "pair:L0H0+L1H1");
  add("stand_in_loss", -0.001, 0.00001, -1, -1, -1, "pair:L0H0+L1H1");
  EXPECT_EQ(said(), (std::vector<std::string>{
                        "L0H0+L0H1 stand in for each other: each alone can go, and together they cost at "
                        "most 0.0004 ± 1e-05 more than their effects add up to, loss at most 0.07 ± 0.006 "
                        "more (epsilon 0.001)"}));
}

TEST_F(ImportanceRule, SaysWhichRankSufficesAndWhatEachCosts) {
  add("rank_qk_kl", 0.2, 0.01, -1, -1, 1);
  add("rank_qk_kl", 0.0001, 0.00001, -1, -1, 4);
  add("rank_qk_suffices", 4, kNone);
  add("rank_qk_suffices", 1, kNone, 0);
  add("rank_qk_suffices", 4, kNone, 1);
  EXPECT_EQ(
      said(),
      std::vector<std::string>{
          "rank 4 of qk suffices in all layers at once on 8 samples (epsilon 0.001); cost by rank 1: 0.2, 4: "
          "0.0001; one layer at a time from 1 (layer 0) to 4 (layer 1)"});
}

TEST_F(ImportanceRule, WhereTheLossIsNotDecidedNothingIsSaidToGo) {
  add("head_zero_kl", 0.00001, 0.000001, 0, 1);
  add("head_zero_loss", 0.0028, 0.0018, 0, 1);
  add("prune_kl", 0.00004, 0.000003, -1, -1, 1);
  add("prune_loss", 0.021, 0.022, -1, -1, 1);
  EXPECT_EQ(
      said(),
      (std::vector<std::string>{
          "? of 1 of 6 heads, each alone writing zero with its share of the biases on 8 samples, the "
          "output needs 0, 0 cost less than epsilon 0.001 and 1 are not known, for the loss of the text "
          "alone; "
          "most in nats: L0H1 1e-05 "
          "± 1e-06 (loss +0.0028 ± 0.0018)",
          "? not known whether the 1 least important of 1 heads can go on 8 samples (epsilon 0.001, for "
          "the loss, too): 1 out cost 4e-05 ± 3e-06, loss +0.021 ± 0.022"}));
}

TEST_F(ImportanceRule, FewSamplesDecideNoRank) {
  add("rank_qk_kl", 0.00005, kNone, -1, -1, 1);
  add("rank_qk_suffices", 1, kNone);
  table_.rows.front().n = 1;
  EXPECT_EQ(said(), std::vector<std::string>{
                        "? not known which rank of qk suffices (epsilon 0.001): 1 sample is too few; cost by "
                        "rank 1: 5e-05"});
}

TEST_F(ImportanceRule, NamesTheLayersInWhichNoRankSuffices) {
  for (int layer = -1; layer < 3; ++layer) add("rank_qk_kl", 0.2, 0.01, layer, -1, 1);
  add("rank_qk_suffices", 1, kNone, 0);
  EXPECT_EQ(said(),
            std::vector<std::string>{
                "no rank of qk asked for is known to suffice in all layers at once on 8 samples (epsilon "
                "0.001); cost by rank 1: "
                "0.2; one layer at a time 1 in layer 0; no rank asked for is known to suffice in layers 1-2 "
                "alone"});
}

TEST_F(ImportanceRule, WhatItCostIsNoFinding) {
  add("head_zero_passes", 115.04, kNone);
  add("estimate_kl_rank_correlation", 0.934, kNone);
  const std::vector<std::string> all = said();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NE(all[0].find("rank correlation of 0.93 for the KL"), std::string::npos) << all[0];
}

}  // namespace
}  // namespace rankscope
