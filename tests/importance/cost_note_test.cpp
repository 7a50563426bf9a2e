#include "importance/cost_note.h"

#include <gtest/gtest.h>

namespace rankscope {
namespace {

TEST(CostNote, PrintsPassesBesideTheirBound) {
  ResultTable table;
  EXPECT_EQ(cost_note(table), "");
  const auto add = [&](const char* metric, double value) {
    table.rows.push_back({"full", "ln_final.hook_normalized", -1, -1, metric, value, kNone, 8, -1, "all"});
  };
  add("estimate_passes", 11.5);
  add("head_zero_passes", 115.04);
  add("head_zero_passes_bound", 116.02);
  EXPECT_EQ(cost_note(table),
            "forward passes of 8 samples, counted: heads 115.0 (bound 116.0), estimates 11.5");
}

}  // namespace
}  // namespace rankscope
