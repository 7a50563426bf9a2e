#include "base/special.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope {
namespace {

// One and two degrees of freedom have closed forms.
TEST(Student, TailsAreThoseOfItsClosedForms) {
  for (const double t : {-3.0, -0.5, 0.0, 0.7, 2.0, 40.0}) {
    EXPECT_NEAR(student_tail(t, 1), 0.5 - std::atan(t) / M_PI, 1e-14);
    EXPECT_NEAR(student_tail(t, 2), 0.5 - t / (2 * std::sqrt(2 + t * t)), 1e-14);
  }
  EXPECT_EQ(student_tail(INFINITY, 7), 0);
  EXPECT_NEAR(student_tail(1.96, 1e7), 0.5 * std::erfc(1.96 / std::sqrt(2.0)),
              1e-7);  // the normal is 1 / freedom away
}

TEST(Student, QuantilesAreWhereTheTailsAre) {
  for (const double level : {0.025, 0.005, 1e-6})
    for (const double freedom : {1.0, 2.0, 29.0})
      EXPECT_NEAR(student_tail(student_quantile(level, freedom), freedom), level, 1e-11 * level) << freedom;
  EXPECT_NEAR(student_quantile(0.025, 29), 2.045, 0.0005);  // as tables print it
}

}  // namespace
}  // namespace rankscope
