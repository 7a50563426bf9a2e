// Every metric that reaches a table is described, and the manifest says its version.
#include "pass/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "collapse/collapse.h"
#include "paths/operator.h"
#include "paths/paths.h"
#include "scan/fixture_request.h"

namespace rankscope {
namespace {

void expect_described(const ScanResult& result) {
  ASSERT_FALSE(result.table.rows.empty());
  std::set<std::string> used;
  for (const Row& r : result.table.rows) used.insert(r.metric.str());
  for (const std::string& name : used) {
    const Row& first = *std::find_if(result.table.rows.begin(), result.table.rows.end(),
                                     [&](const Row& r) { return r.metric.str() == name; });
    const MetricInfo* info = metric_info(name, first.site.str());
    ASSERT_NE(info, nullptr) << name;
    EXPECT_EQ(result.manifest["metric_versions"][name], info->version) << name;
    EXPECT_EQ(result.manifest["metrics"][name]["formula"], std::string(info->formula)) << name;
  }
  EXPECT_EQ(result.manifest["metric_versions"].size(), used.size());
  EXPECT_EQ(result.manifest["schema"], kResultSchema);
}

ScanRequest request() {
  ScanRequest r = test::random_tokens_through("bert", 2, 6);
  r.threads = 1;  // matrices this small only wait for each other
  return r;
}

TEST(Metrics, OfAScanAreDescribed) {
  ScanRequest with_variant = request();
  with_variant.off = {"skip"};
  expect_described(scan(with_variant, {}));
}

// Tokens and attention matrices have ranks of one name: what the manifest says of a site must be meant of
// that site.
TEST(Metrics, ANameThatTwoLensesShareIsDefinedForEachSite) {
  const ScanResult result = scan(request(), {});
  for (const Row& r : result.table.rows) {
    const bool attention = r.site.str().find("hook_pattern") != std::string::npos;
    if (r.metric != "effective_rank") continue;
    const Json& told = result.manifest["metrics"]["effective_rank"];
    const std::string site(within_block(r.site.str()));
    const std::string formula =
        told.contains("at") && told["at"].contains(site) ? told["at"][site]["formula"] : told["formula"];
    EXPECT_TRUE(formula.ends_with(attention ? "of the attention matrix A" : "of X"))
        << r.site.str() << ": " << formula;
  }
}

TEST(Metrics, OfACollapseAreDescribed) {
  CollapseRequest r;
  r.scan = request();
  r.arithmetic = "split";  // measures in float32, too
  expect_described(measure_collapse(r, {}));
}

TEST(Metrics, OfPathsAreDescribed) {
  for (const char* by : {"length", "layer", "head"}) {
    PathsRequest r;
    r.scan = request();
    r.by = by;
    expect_described(measure_paths(r, {}));
  }
  PathsRequest chained;
  chained.scan = request();
  chained.chained = true;
  chained.chains = 2;
  expect_described(measure_paths(chained, {}));
}

TEST(Metrics, OfAnOperatorAreDescribed) {
  OperatorRequest r;
  r.scan = request();
  r.top = 2;
  r.probes = 3;
  r.jacobian_probes = 1;
  expect_described(measure_operator(r, {}).scan);
}

TEST(Metrics, ANumberInTheNameStandsForAll) {
  EXPECT_EQ(metric_info("sigma_1"), metric_info("sigma_12"));
  EXPECT_EQ(metric_info("sigma_3_residual")->name, "sigma_k_residual");
  EXPECT_EQ(metric_info("sigma"), nullptr);
  EXPECT_EQ(metric_info(""), nullptr);
}

}  // namespace
}  // namespace rankscope
