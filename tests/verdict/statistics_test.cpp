#include "verdict/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope::verdict {
namespace {

// One and two degrees of freedom have closed forms.
TEST(Statistics, TailsOfStudentsTAreThoseOfItsClosedForms) {
  for (const double t : {-3.0, -0.5, 0.0, 0.7, 2.0, 40.0}) {
    EXPECT_NEAR(student_tail(t, 1), 0.5 - std::atan(t) / M_PI, 1e-14);
    EXPECT_NEAR(student_tail(t, 2), 0.5 - t / (2 * std::sqrt(2 + t * t)), 1e-14);
  }
  EXPECT_EQ(student_tail(INFINITY, 7), 0);
  EXPECT_NEAR(student_tail(1.96, 1e7), 0.5 * std::erfc(1.96 / std::sqrt(2.0)),
              1e-7);  // the normal is 1 / freedom away
}

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
