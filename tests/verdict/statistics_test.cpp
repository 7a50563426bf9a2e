#include "verdict/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace rankscope::verdict {
namespace {

TEST(Statistics, BenjaminiHochbergRejectsTheirExample) {
  // Table 1 of the paper's example: fifteen p-values, of which the four smallest are rejected at 0.05.
  const std::vector<double> p{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                              0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const std::vector<bool> rejected = benjamini_hochberg(p, 0.05);
  for (size_t i = 0; i < p.size(); ++i) EXPECT_EQ(rejected[i], i < 4) << p[i];
  EXPECT_TRUE(benjamini_hochberg({}, 0.05).empty());
}

}  // namespace
}  // namespace rankscope::verdict
