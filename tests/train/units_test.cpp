#include "train/units.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <stdexcept>
#include <vector>

namespace rankscope {
namespace {

TEST(Units, EveryUnitIsDoneOnce) {
  for (const int threads : {1, 2, 5}) {
    std::vector<int> done(7, 0);
    each_unit(threads, 7, [&](int64_t unit) { ++done[static_cast<size_t>(unit)]; });
    EXPECT_EQ(done, std::vector<int>(7, 1)) << threads;
  }
}

// Libraries that see the region keep to its thread.
TEST(Units, ALoneUnitIsInsideARegionToo) {
  bool inside = false;
  each_unit(2, 1, [&](int64_t) { inside = omp_in_parallel() != 0; });
  EXPECT_TRUE(inside);
}

TEST(Units, WhatAUnitThrowsArrives) {
  for (const int threads : {1, 2})
    EXPECT_THROW(each_unit(threads, 3,
                           [](int64_t unit) {
                             if (unit == 1) throw std::runtime_error("unit 1");
                           }),
                 std::runtime_error)
        << threads;
}

}  // namespace
}  // namespace rankscope
