// tests/fixtures/results: one scan, written by the last program of schema 1 and by the first of schema 2.
#include <gtest/gtest.h>

#include "base/csv.h"
#include "report/csv.h"
#include "report/diff.h"
#include "report/figure.h"
#include "report/page.h"
#include "report/read.h"
#include "support/source_tree.h"

namespace rankscope {
namespace {
namespace fs = std::filesystem;

fs::path folder(int schema) { return test::fixtures() / "results" / ("schema" + std::to_string(schema)); }

SavedResults read(int schema) { return read_results(folder(schema), Samples::read); }

std::string text(const ResultTable& table) {
  std::string out;
  const auto add = [&](std::string_view piece) { out += piece; };
  write_metrics_csv(table, add);
  write_samples_csv(table, add);
  return out;
}

Json page_scan(const SavedResults& saved) {
  const Results view = saved.view();
  PageContent content;
  content.scans = {&view};
  std::string out;
  write_page_data(content, [&](std::string_view piece) { out += piece; });
  return Json::parse(out)["scans"][0];
}

TEST(Schema, TheFixturesAreOfTheSchemasTheyAreNamedAfter) {
  EXPECT_EQ(read(1).manifest["schema"], 1);
  EXPECT_EQ(read(2).manifest["schema"], kResultSchema);
  EXPECT_EQ(read_csv(folder(1) / "metrics.csv").columns.back(), "tokens");
  EXPECT_EQ(read_csv(folder(2) / "metrics.csv").columns.back(), "stream");
  EXPECT_FALSE(read(1).manifest.contains("metric_versions"));
  EXPECT_EQ(read(2).manifest["metric_versions"]["output_kl"], 1);
}

TEST(Schema, BothReadToTheSameRowsAndSamples) {
  const SavedResults old = read(1), now = read(2);
  EXPECT_EQ(old.table.rows.size(), 99u);
  EXPECT_EQ(old.table.samples.size(), 198u);
  EXPECT_EQ(text(old.table), text(now.table));
}

TEST(Schema, NothingChangedBetweenThem) {
  const ScanDiff diff = compare(read(1), read(2));
  EXPECT_EQ(diff.changes.size(), 99u);
  for (const Change& c : diff.changes) EXPECT_EQ(c.delta, 0) << c.site.str() << " " << c.metric.str();
  EXPECT_EQ(diff.only_a + diff.only_b, 0u);
  EXPECT_TRUE(diff.notes.empty());
}

TEST(Schema, APlotOfEitherHasTheSamePoints) {
  FigureRequest request;
  request.y = "residual_l1inf_rel";
  request.site = "resid_post";
  request.by = {"variant"};
  request.where = {{"tokens", "all"}};
  const auto points = [&](int schema) {
    std::vector<std::tuple<std::string, double, double>> out;
    for (const FigureCurve& curve : select_curves({read_csv(folder(schema) / "metrics.csv")}, request))
      for (const FigurePoint& p : curve.points) out.emplace_back(curve.name, p.x, p.y);
    return out;
  };
  EXPECT_EQ(points(1).size(), 8u);  // two variants, the embeddings and three layers
  EXPECT_EQ(points(1), points(2));
}

TEST(Schema, APageOfEitherHoldsTheSameNumbers) {
  const Json old = page_scan(read(1)), now = page_scan(read(2));
  EXPECT_EQ(old["groups"], now["groups"]);
  EXPECT_EQ(old["strings"], now["strings"]);
  for (const Json& group : now["groups"]) EXPECT_EQ(group.size(), 10u);  // pages of schema 1 read ten
}

}  // namespace
}  // namespace rankscope
