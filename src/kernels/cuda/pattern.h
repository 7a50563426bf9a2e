// What an attention pattern says row by row and column by column, in one pass over it on CUDA.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

/// Rows first_row .. first_row + rows - 1 of `matrices` patterns, each row `keys` long. Query i sees keys
/// up to itself where `causal`, and only those less than `window` away where that is not 0.
struct PatternTile {
  int64_t matrices = 0, rows = 0, keys = 0, first_row = 0;
  bool causal = false;
  int64_t window = 0;
};

/// Rows are summed in segments, each by a block of its own; the caller adds the segments up.
constexpr int64_t kPatternSegment = 64;
constexpr int64_t pattern_segments(const PatternTile& tile) {
  return (tile.rows + kPatternSegment - 1) / kPatternSegment;
}

/// pattern [matrices, rows, keys]. entropy [matrices, segments]: sum over rows of H(row) / log(keys seen),
/// rows that have a choice only. received [matrices, segments, keys]: column sums.
void pattern_sums(const PatternTile& tile, const float* pattern, double* entropy, double* received,
                  void* stream);

}  // namespace rankscope::cuda
