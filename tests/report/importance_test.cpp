// The line of the loss and the block of heads, as a terminal shows them.
#include <gtest/gtest.h>

#include "report/head_cells.h"
#include "report/loss_line.h"

namespace rankscope {
namespace {

Row loss(const char* variant, const char* metric, double value, double error) {
  return {variant, "unembed.hook_out", -1, -1, metric, value, error, 4, 2, "all"};
}

TEST(LossLine, SaysTheLossOfEveryVariantWithItsError) {
  ResultTable t;
  EXPECT_EQ(loss_line(t), "");
  t.rows = {loss("full", "nll", 3.2149, 0.0413), loss("full", "perplexity", 24.9, 1.0),
            loss("-skip", "nll", 9.8, 0.31), loss("-skip", "perplexity", 18000, 10.0)};
  EXPECT_EQ(
      loss_line(t),
      "full 3.215 ± 0.041 nats a token (perplexity 24.9), -skip 9.80 ± 0.31; the next token, 4 samples");
}

TEST(LossLine, HasNoErrorOfOneSampleAndNoPerplexityOfHoles) {
  ResultTable t;
  t.rows = {loss("full", "pseudo_nll", 2.5, kNone)};
  t.rows.front().n = 1;
  EXPECT_EQ(loss_line(t), "full 2.5 nats a token; 15 % of the tokens hidden, 1 sample");
}

TEST(LossLine, NamesSixVariantsAndCountsTheRest) {
  ResultTable t;
  for (int i = 0; i < 9; ++i) t.rows.push_back(loss("v", "nll", 1, kNone));
  EXPECT_NE(loss_line(t).find(" and 3 more;"), std::string::npos);
}

ResultTable heads(const std::vector<std::vector<double>>& values, const char* metric = "head_zero_kl") {
  ResultTable t;
  for (size_t l = 0; l < values.size(); ++l)
    for (size_t h = 0; h < values[l].size(); ++h)
      t.rows.push_back({"full", "x", static_cast<int32_t>(l), static_cast<int32_t>(h), metric, values[l][h],
                        kNone, 8, -1, "all"});
  return t;
}

TEST(HeadCells, AreLogarithmicFromTheLeastToTheMost) {
  EXPECT_EQ(head_cells(heads({{1e-4, 1e-2}, {1, 1e-3}}), 80, true),
            (std::vector<std::string>{"heads by head_zero_kl, ▁ 0.0001 to █ 1, logarithmic",
                                      "    0  ▁ ▅  H1 0.01", "    1  █ ▃  H0 1"}));
  EXPECT_EQ(head_cells(heads({{1e-4, 1e-2}, {1, 1e-3}}), 80, false)[1], "    0  0 4  H1 0.01");
}

TEST(HeadCells, ShowAHeadThatCostsNothingAsBelowTheScale) {
  EXPECT_EQ(head_cells(heads({{0, 0.1, 1}}), 80, false),
            (std::vector<std::string>{"heads by head_zero_kl, 0 0.1 to 7 1, logarithmic; . less",
                                      "    0  . 0 7  H2 1"}));
}

TEST(HeadCells, AreLeftOutWhereTheyDoNotFitOrWereNotMeasured) {
  EXPECT_TRUE(head_cells({}, 80, true).empty());
  EXPECT_TRUE(head_cells(heads({{0, 0}}), 80, true).empty());
  EXPECT_TRUE(head_cells(heads({std::vector<double>(40, 1.0)}), 80, true).empty());
}

// Exact values of a few heads beside estimates of all: the map is that of the estimates.
TEST(HeadCells, AMapIsOfAllHeads) {
  ResultTable t = heads({{1, 2, 3}}, "head_estimate_kl");
  t.rows.push_back({"full", "x", 0, 2, "head_zero_kl", 9.0, kNone, 8, -1, "all"});
  EXPECT_EQ(head_cells(t, 80, true).front().substr(0, 25), "heads by head_estimate_kl");
}

}  // namespace
}  // namespace rankscope
