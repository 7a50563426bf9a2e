#include "report/figure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace rankscope {
namespace {

CellTable metrics() {
  return {{"variant", "site", "metric", "value", "stderr", "depth"},
          {{"full", "blocks.0.hook_resid_post", "r", "0.5", "0.1", "1"},
           {"full", "blocks.1.hook_resid_post", "r", "0.25", "", "2"},
           {"full", "blocks.1.ln1.hook_normalized", "r", "7", "", "2"},
           {"full", "blocks.1.hook_resid_post", "other", "9", "", "2"},
           {"-skip", "blocks.0.hook_resid_post", "r", "", "", "1"},
           {"-skip", "blocks.1.hook_resid_post", "r", "0.125", "", "2"}}};
}

TEST(Figure, SelectsRowsOfOneMetricAndSite) {
  const auto curves =
      select_curves({metrics()}, {.y = "r", .site = "resid_post", .by = {"variant"}, .band = "stderr"});
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].name, "full");
  ASSERT_EQ(curves[0].points.size(), 2u);
  EXPECT_EQ(curves[0].points[0].x, 1);
  EXPECT_EQ(curves[0].points[0].low, 0.4);
  EXPECT_EQ(curves[0].points[1].low, 0.25);  // no error, no band
  EXPECT_EQ(curves[1].points.size(), 1u);    // an empty cell is no point
}

FigureRequest request(const std::string& y, const std::string& site = "", const std::string& x = "depth") {
  FigureRequest r;
  r.x = x;
  r.y = y;
  r.site = site;
  return r;
}

TEST(Figure, ASiteIsMeantByItsEndAndNotByItsMiddle) {
  EXPECT_EQ(select_curves({metrics()}, request("r", "hook_normalized"))[0].points.size(), 1u);
  EXPECT_THROW(select_curves({metrics()}, request("r", "post")), Error);
  EXPECT_THROW(select_curves({metrics()}, request("r", "resid")), Error);
}

TEST(Figure, ACurveOverDepthBeginsAtTheEmbeddings) {
  CellTable table = metrics();
  table.rows.push_back({"full", "blocks.0.hook_resid_pre", "r", "0.9", "", "0"});
  table.rows.push_back({"full", "blocks.1.hook_resid_pre", "r", "0.8", "", "1"});
  FigureRequest wanted = request("r", "resid_post");
  wanted.where = {{"variant", "full"}};
  const auto curves = select_curves({table}, wanted);
  ASSERT_EQ(curves[0].points.size(), 3u);
  EXPECT_EQ(curves[0].points[0].x, 0);
  EXPECT_EQ(curves[0].points[0].y, 0.9);
  EXPECT_EQ(curves[0].points[1].y, 0.5)
      << "what the second block reads is what the first one left: it is not taken twice";
  table.rows.push_back({"full", "ln_final.hook_normalized", "r", "6", "", "3"});
  wanted.site = "ln1.hook_normalized";
  EXPECT_EQ(select_curves({table}, wanted)[0].points.back().x, 3);
}

TEST(Figure, RowsOfOnePointBecomeTheirMean) {
  const CellTable trials{{"rank", "seed", "mse"}, {{"1", "0", "0.5"}, {"1", "1", "0.7"}, {"2", "0", "0.2"}}};
  FigureRequest wanted = request("mse", "", "rank");
  wanted.band = "seed";  // any column of numbers asks for a band
  const auto curves = select_curves({trials}, wanted);
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_DOUBLE_EQ(curves[0].points[0].y, 0.6);
  EXPECT_NEAR(curves[0].points[0].high - 0.6, 0.1, 1e-15);  // of two values: half their distance
}

TEST(Figure, ASummaryIsReadByItsMetricsAndNotAllAtOnce) {
  const CellTable summary{
      {"rank", "metric", "seeds", "mean"},
      {{"1", "test_mse", "3", "0.5"}, {"1", "flops", "3", "1e9"}, {"2", "test_mse", "3", "0.2"}}};
  EXPECT_DOUBLE_EQ(select_curves({summary}, request("test_mse", "", "rank"))[0].points[0].y, 0.5);
  try {
    select_curves({summary}, request("mean", "", "rank"));
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "this table has a row for each of 2 metrics, and mean is a column of all of them");
  }
  FigureRequest one = request("mean", "", "rank");
  one.where = {{"metric", "test_mse"}};
  EXPECT_DOUBLE_EQ(select_curves({summary}, one)[0].points[1].y, 0.2);
}

TEST(Figure, ANumberInALegendSaysWhatItIs) {
  const CellTable trials{{"rank", "layers", "kind", "mse"},
                         {{"1", "3", "soft", "0.5"}, {"1", "5", "soft", "0.7"}}};
  FigureRequest wanted = request("mse", "", "rank");
  wanted.by = {"layers", "kind"};
  const auto curves = select_curves({trials}, wanted);
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].name, "layers 3, soft");
  EXPECT_EQ(curves[1].name, "layers 5, soft");
}

TEST(Figure, ATruthInALegendSaysOfWhatAndAnEmptyCellSaysNothing) {
  const CellTable trials{{"rank", "skip", "start_scale", "mse"},
                         {{"1", "false", "", "0.5"}, {"1", "true", "2", "0.7"}}};
  FigureRequest wanted = request("mse", "", "rank");
  wanted.by = {"skip", "start_scale"};
  const auto both = select_curves({trials}, wanted);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].name, "skip false");
  EXPECT_EQ(both[1].name, "skip true, start_scale 2");
  wanted.by = {"start_scale"};
  EXPECT_EQ(select_curves({trials}, wanted)[0].name, "no start_scale");  // a legend without a word is none
}

TEST(Figure, UnknownNamesAreRefused) {
  EXPECT_THROW(select_curves({metrics()}, request("r", "", "dept")), Error);
  EXPECT_THROW(select_curves({metrics()}, request("s")), Error);
  FigureRequest wanted = request("r");
  wanted.by = {"seed"};
  EXPECT_THROW(select_curves({metrics()}, wanted), Error);
  wanted = request("r");
  wanted.where = {{"variant", "none"}};
  EXPECT_THROW(select_curves({metrics()}, wanted), Error);
}

}  // namespace
}  // namespace rankscope
