// Shapes of matrices at which a Jacobi of columns could go wrong: a single row or column, odd and even
// numbers of columns, wide and tall, around the width of a warp and of two.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace rankscope::test {

using Shape = std::pair<int64_t, int64_t>;  // rows, columns

inline std::vector<Shape> matrix_shapes() {
  return {{1, 1},   {1, 2},   {2, 1},   {2, 2},   {3, 7},   {7, 3},   {1, 40},    {40, 1},   {9, 9},
          {16, 17}, {33, 33}, {31, 64}, {64, 31}, {63, 65}, {65, 63}, {128, 128}, {129, 40}, {40, 129}};
}

}  // namespace rankscope::test
