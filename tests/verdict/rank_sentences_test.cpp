// What is said of ranks, and of cutting them. A table is planted, the words must follow.
#include "verdict/planted_table.h"

namespace rankscope {
namespace {

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

TEST_F(Verdict, AMapOfRankOneIsLowInANarrowHeadToo) {
  for (BlockSpec& b : spec_.blocks) b.attention().d_v = 8;
  head(0, 0, "ov_effective_rank", 1);
  head(0, 1, "ov_effective_rank", 1.2);
  EXPECT_EQ(
      said("rank").back(),
      "1 of 2 OV maps are low in rank (L0H0): the lowest is L0H0 with effective rank 1 of 8 (share 0.125, "
      "threshold 0.1 or rank one, no baseline)");
}

TEST_F(Verdict, AHeadThatGivesEveryKeyTheSameScoreIsNamedBesideTheOthers) {
  head(0, 0, "logit_rms", 0);
  head(0, 1, "logit_rms", 1.5);
  head(0, 1, "logit_rank", 6);
  head(0, 1, "logit_rank", 6, "null:init");
  EXPECT_EQ(said("rank")[0], "L0H0 gives every key the same score on this text: logit_rms 0");
  EXPECT_EQ(said("rank")[1].substr(0, 44), "no other head's scores are low in rank: the ");
}

TEST_F(Verdict, CutsAndReplacementsOfShortTextsDecideNothing) {
  shortest_ = 1;
  output_kl("rank:qk=2", 0);
  EXPECT_EQ(
      said("rank").back(),
      "? cutting every head to qk=2 costs output_kl 0 (epsilon 0.001; full: 0): not known whether that is "
      "more than epsilon; the shortest sample has 1 content token, and so few decide nothing (short_text 8)");
  output_kl("replace:softmax=linear", 0);
  EXPECT_EQ(said("replaced").front().substr(0, 2), "? ");
}

TEST_F(Verdict, TruncationSaysWhatItCosts) {
  output_kl("rank:qk=8", 0.02);
  output_kl("rank:ov=16", 2e-5);
  output_kl("rank:qk=12", 0.001);
  const Lines lines = said("rank");
  ASSERT_EQ(lines.size(), 6u);
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
  EXPECT_EQ(lines[5],
            "? not known whether any rank of 8, 12 tried for every head's qk map keeps the output within "
            "epsilon 0.001");
}

TEST_F(Verdict, WhatACutCostsIsToldInFullAndNotCalledNormal) {
  for (const char* variant : {"rank:qk=4", "rank:qk=8"}) output_kl(variant, 0.02);
  const std::vector<Finding> findings = all("rank");
  ASSERT_EQ(findings.size(), 5u);  // two of what was not measured, one a cut, one of both
  for (size_t i = 2; i < 5; ++i) EXPECT_TRUE(findings[i].asked) << findings[i].sentence;
}

TEST_F(Verdict, ScoresAreHeldAgainstThoseOfRandomInitialisation) {
  head(0, 0, "logit_rank", 1.2);
  head(0, 1, "logit_rank", 6.0);
  EXPECT_EQ(said("rank").front(),
            "? not known whether scores are low in rank: the lowest are those of L0H0 with logit_rank 1.2 ± "
            "0.0012, and there is "
            "no random initialisation to hold it against; scan with --null");
  for (const int h : {0, 1}) head(0, h, "logit_rank", 8.0, "null:init");
  EXPECT_EQ(
      said("rank").front(),
      "the scores of 1 of 2 heads are low in rank (L0H0): the lowest are those of L0H0 with logit_rank 1.2 ± "
      "0.0012, 0.15 ± "
      "0.00021 of random initialisation's (threshold 0.5); --rank qk=auto tells what rank the output needs");
  table_.rows[0].value = 4.0;
  EXPECT_EQ(said("rank")[0].substr(0, 38), "no head's scores are clearly low in ra");
  EXPECT_EQ(said("rank")[1],
            "? not known for the scores of L0H0: too near 0.5 for their errors; more samples would decide");
  table_.rows[1].value = 4.0;  // now none is decided, which is said once
  EXPECT_EQ(said("rank")[0].substr(0, 89),
            "? not known whether any head's scores are low in rank: the lowest are those of L0H0 with ");
  EXPECT_EQ(said("rank")[1].find("the scores"), std::string::npos);
  EXPECT_TRUE(
      said("rank")[0].ends_with("(threshold 0.5); too near 0.5 for their errors; more samples would "
                                "decide"));
}

TEST_F(Verdict, ScoresThatAreOfRankOneAtRandomAreHeldAgainstNothing) {
  // As ALiBi's: no logit_rank is below 1, so none is below half of 1.2.
  head(0, 0, "logit_rank", 1.0);
  head(0, 0, "logit_rank", 1.2, "null:init");
  EXPECT_EQ(
      said("rank").front(),
      "? not known whether scores are low in rank: the lowest are those of L0H0 with logit_rank 1 ± 0.001, "
      "and those of random initialisation have themselves a logit_rank of 2 or less");
  head(0, 1, "logit_rank", 6.0);
  head(0, 1, "logit_rank", 8.0, "null:init");
  EXPECT_EQ(said("rank")[0],
            "no other head's scores are low in rank: the lowest are those of L0H1 with logit_rank 6 ± 0.006, "
            "0.75 ± 0.0011 of random initialisation's (threshold 0.5)");
  EXPECT_EQ(
      said("rank")[1],
      "? not known for the scores of L0H0: those of random initialisation have themselves a logit_rank of "
      "2 or less");
}

TEST_F(Verdict, ARankThatIsNotDecidedStaysSoWhateverLargerOnesCost) {
  output_kl("rank:qk=1", 0.001);
  output_kl("rank:qk=2", 0.02);
  EXPECT_EQ(
      said("rank").back(),
      "? not known whether any rank of 1, 2 tried for every head's qk map keeps the output within epsilon "
      "0.001");
}

TEST_F(Verdict, MapsThatLostRankAgainstABaselineAreNamed) {
  for (const int h : {0, 1}) {
    head(0, h, "logit_rank", 6.0);
    head(0, h, "qk_effective_rank", h == 0 ? 1.04 : 9.0);
    head(0, h, "qk_effective_rank", 9.3, "baseline");
  }
  const Lines lines = said("rank");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[1].starts_with("1 of 2 QK maps are low in rank (L0H0): the lowest is L0H0")) << lines[1];
  EXPECT_EQ(
      lines[2],
      "1 of 2 QK maps have less than 0.5 of the effective rank that they have in baseline (L0H0): most is "
      "lost by L0H0, 1.04 of 9.3");
}

TEST_F(Verdict, OfSeveralRanksTheSmallestThatKeepsTheOutputIsNamed) {
  for (const auto& [rank, cost] : {std::pair{1, 0.3}, {2, 0.02}, {4, 1e-5}, {8, 1e-7}})
    output_kl(fmt::format("rank:qk={}", rank), cost);
  EXPECT_EQ(said("rank").back(),
            "4 is the smallest rank within epsilon 0.001 of the output, of 1, 2, 4, 8 tried for every head's "
            "qk map");
  for (Row& r : table_.rows)
    if (r.variant == "rank:qk=2") r.value = 0.001;
  EXPECT_EQ(said("rank").back(),
            "? not known below it: 4 is the smallest rank within epsilon 0.001 of the output, of 1, 2, 4, 8 "
            "tried for every "
            "head's qk map");
}

TEST_F(Verdict, AMapOfAHeadThatIsWiderThanTheStreamIsHeldAgainstTheStream) {
  spec_.width = 8;
  head(0, 0, "ov_effective_rank", 5.69);  // of 32 through the head
  EXPECT_TRUE(said("rank").back().starts_with(
      "no OV map is low in rank: the lowest is L0H0 with effective rank 5.69 of 8 (share 0.711, "))
      << said("rank").back();
}

TEST_F(Verdict, AMapThroughALatentIsHeldAgainstTheLatent) {
  spec_.blocks[0].branches[0].part.name = "latent_attention";  // whose own kv_rank is 4
  head(0, 0, "ov_effective_rank", 3);
  EXPECT_TRUE(said("rank").back().starts_with(
      "no OV map is low in rank: the lowest is L0H0 with effective rank 3 of 4 "))
      << said("rank").back();
}

TEST_F(Verdict, HeadsWhoseScoresHardlyDifferAreNamed) {
  head(0, 0, "logit_rms", 0.006);
  head(0, 1, "logit_rms", 0.9);
  head(1, 0, "logit_rms", 0.05).stderr_ = 0.01;  // too near
  EXPECT_EQ(said("rank").front(),
            "L0H0 gives every key nearly the same score on this text, so that attention there is all but "
            "uniform: logit_rms 0.006 ± 6e-06 at most (threshold 0.05)");
  table_.rows.erase(table_.rows.begin());
  for (const std::string& line : said("rank"))
    EXPECT_EQ(line.find("nearly the same score"), std::string::npos);
}

}  // namespace
}  // namespace rankscope
