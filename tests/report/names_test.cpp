#include "report/names.h"

#include <gtest/gtest.h>

#include <sstream>

#include "report/terminal.h"
#include "tables.h"

namespace rankscope {
namespace {

TEST(Names, MetricsReadAsWords) {
  EXPECT_EQ(readable_metric("effective_rank_rel"), "Effective rank (share)");
  EXPECT_EQ(readable_metric("residual_fro_rel_trimmed"), "Residual without outliers (share)");
  EXPECT_EQ(readable_metric("effective_rank_rows256"), "Effective rank, of 256 rows");
  EXPECT_EQ(readable_metric("test_mse"), "Test MSE");
}

TEST(Names, AMetricWithoutANameIsReadWordByWord) {
  EXPECT_EQ(readable_metric("depth"), "depth");
  EXPECT_EQ(readable_metric("train_mse"), "train MSE");
  EXPECT_EQ(readable_metric("mine_rel"), "mine (share)");
}

TEST(Names, AnAxisSaysItsUnit) {
  EXPECT_EQ(axis_label("output_kl"), "Change of the predictions (KL), nats");
  EXPECT_EQ(axis_label("effective_rank_rel"), "Effective rank (share)");
}

TEST(Names, ADepthThatCountsNoBlocksSaysWhatItCounts) {
  EXPECT_EQ(depth_label("prune_kl"), "heads out");
  EXPECT_EQ(depth_label("rank_qk_loss"), "rank");
  EXPECT_EQ(depth_label("residual_fro_rel"), "depth (blocks passed)");
}

TEST(Names, VariantsSayWhatWasTakenOut) {
  EXPECT_EQ(readable_variant("full"), "whole network");
  EXPECT_EQ(readable_variant("-skip"), "without skips");
  EXPECT_EQ(readable_variant("-skip+mlp"), "without skips and MLP");
  EXPECT_EQ(readable_variant("-head-mean:L0H1"), "-head-mean:L0H1");
  EXPECT_EQ(readable_variant("rank:qk=8"), "rank:qk=8");
}

TEST(Names, AHeadingOfTheTableStandsForItsMetric) {
  ASSERT_NE(short_name("eff.rank"), nullptr);
  EXPECT_EQ(short_name("eff.rank")->metrics.front(), "effective_rank_rel");
  EXPECT_EQ(short_name("residual")->metrics.front(), "residual_fro_rel_trimmed");
  EXPECT_EQ(short_name("effective_rank_rel"), nullptr);
}

TEST(Names, EveryHeadingThatIsPrintedIsOne) {
  ResultTable table;
  add_variant(table, "full", 2, 0.1, 0);
  const Json manifest;
  std::ostringstream out;
  print_results({table, {}, {}, manifest}, {}, out);
  const std::string text = out.str();
  std::istringstream heading(
      text.substr(text.find("layer "), text.find('\n', text.find("layer ")) - text.find("layer ")));
  std::string word;
  heading >> word;
  int count = 0;
  for (; heading >> word; ++count) EXPECT_NE(short_name(word), nullptr) << word;
  EXPECT_EQ(count, 6);
}

}  // namespace
}  // namespace rankscope
