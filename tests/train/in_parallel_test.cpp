#include "train/in_parallel.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <stdexcept>
#include <vector>

namespace rankscope {
namespace {

TEST(InParallel, EveryTaskIsDoneOnce) {
  for (const int threads : {1, 2, 5}) {
    std::vector<int> done(7, 0);
    each_in_parallel(threads, 7, [&](int64_t task) { ++done[static_cast<size_t>(task)]; });
    EXPECT_EQ(done, std::vector<int>(7, 1)) << threads;
  }
}

// Libraries that see the region keep to its thread.
TEST(InParallel, ALoneTaskIsInsideARegionToo) {
  bool inside = false;
  each_in_parallel(2, 1, [&](int64_t) { inside = omp_in_parallel() != 0; });
  EXPECT_TRUE(inside);
}

TEST(InParallel, WhatATaskThrowsArrives) {
  for (const int threads : {1, 2})
    EXPECT_THROW(each_in_parallel(threads, 3,
                                  [](int64_t task) {
                                    if (task == 1) throw std::runtime_error("task 1");
                                  }),
                 std::runtime_error)
        << threads;
}

}  // namespace
}  // namespace rankscope
