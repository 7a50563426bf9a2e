// Blocks whose branches read side by side.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "scan/scan.h"
#include "support/source_tree.h"

namespace rankscope {
namespace {

// Attention and MLP read through one norm, so it is run twice; a lens that saw it twice would take one sample
// for two, and its standard errors would be too small by the root of two.
TEST(SideBySide, WhatTwoBranchesReadThroughOneNormIsMeasuredOnce) {
  constexpr int64_t kSamples = 3;
  for (const char* model : {"phi", "falcon", "falcon-new-one-norm", "stablelm-parallel"}) {
    ScanRequest r;
    r.model = test::fixtures() / "models" / model;
    r.random_tokens = true;
    r.samples = kSamples;
    r.lenses = {"residual"};
    const ScanResult result = scan(r, {});
    std::set<std::tuple<std::string, std::string, std::string, int64_t>> seen;
    bool normalized = false;
    for (const SampleRow& s : result.table.samples) {
      normalized = normalized || s.site.str() == "blocks.1.ln1.hook_normalized";
      EXPECT_TRUE(seen.emplace(s.site.str(), s.metric.str(), std::string(s.tokens.str()), s.sample).second)
          << model << ", " << s.metric.str() << " at " << s.site.str() << ", sample " << s.sample;
    }
    EXPECT_TRUE(normalized) << model;
    for (const Row& row : result.table.rows) EXPECT_LE(row.n, kSamples) << model << ", " << row.site.str();
  }
}

}  // namespace
}  // namespace rankscope
