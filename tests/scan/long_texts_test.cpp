// A scan of texts longer than kWholePattern says the same whether attention's matrices come in tiles or not
// at all.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "scan/pass_run.h"

namespace rankscope {
namespace {

// Needs tiles, so that every lens of the site gets them.
class NeedsTiles : public Measurement {};

const Lens& needs_tiles() {
  static const Lens lens{.name = "tiles",
                         .summary = {},
                         .cost = {},
                         .sites = {{"attn.hook_pattern", SiteForm::tiles}},
                         .metrics = {},
                         .start = [](const LensContext&) -> std::unique_ptr<Measurement> {
                           return std::make_unique<NeedsTiles>();
                         }};
  return lens;
}

using Key = std::tuple<std::string, std::string, int, int, std::string>;  // metric, site, layer, head, tokens

std::map<Key, double> scanned(const ModelSpec& spec, const std::string& dtype, bool in_tiles) {
  const auto source = random_source(spec, 5, dtype, "cpu");
  PassPlan plan = plan_of(spec, *source, {});
  plan.inputs = {make_batches(test::random_samples({700, 12, 650}, 50), spec, 8)};
  if (in_tiles) plan.lenses.push_back(&needs_tiles());
  std::map<Key, double> out;
  const PassOutcome outcome = run(plan);
  for (const Row& r : outcome.table.rows)
    out[{r.metric.str(), r.site.str(), r.layer, r.head, r.tokens.str()}] = r.value;
  return out;
}

TEST(LongTexts, SayTheSameInTilesAndWithout) {
  ModelSpec spec = test::tiny_spec(NormPlace::pre, 2);
  spec.embedding.positions = 1000;
  spec.blocks[1].attention().window = 90;
  const auto exact = scanned(spec, "float64", true), tiles = scanned(spec, "float32", true),
             without = scanned(spec, "float32", false);
  ASSERT_EQ(tiles.size(), without.size());
  std::map<std::string, double> allowed, scale;
  for (const auto& [key, value] : exact) {
    const std::string& metric = std::get<0>(key);
    allowed[metric] = std::max(allowed[metric], std::fabs(tiles.at(key) - value));
    scale[metric] = std::max(scale[metric], std::fabs(value));
  }
  int seen = 0;
  for (const auto& [key, value] : exact) {
    const std::string& metric = std::get<0>(key);
    if (std::isnan(value)) continue;
    ++seen;
    // Four times the worst that float32 does to this metric in tiles; where that is luckily none, some
    // roundings of what a softmax and a block of 24 channels sum.
    EXPECT_NEAR(without.at(key), value, 4 * allowed[metric] + 256 * 0x1p-24 * std::max(1.0, scale[metric]))
        << metric << " of " << std::get<1>(key) << ", head " << std::get<3>(key);
  }
  EXPECT_GT(seen, 200);
}

TEST(LongTexts, AreNamedWhereTheyStopBeingNumbers) {
  ModelSpec spec = test::tiny_spec(NormPlace::pre, 2);
  spec.embedding.positions = 1000;
  spec.blocks[0].attention().scale = 1e38;  // scores overflow
  const auto source = random_source(spec, 5, "float32", "cpu");
  PassPlan plan = plan_of(spec, *source, {});
  plan.inputs = {make_batches(test::random_samples({700}, 50), spec, 8)};
  try {
    run(plan);
    FAIL() << "nothing was said";
  } catch (const Error& e) {
    EXPECT_NE(e.render().find("blocks.0.attn.hook_pattern, sample 0, token"), std::string::npos)
        << e.render();
  }
}

}  // namespace
}  // namespace rankscope
