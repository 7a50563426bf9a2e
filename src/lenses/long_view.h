// How lenses read attention over texts whose matrices are not held (model/long_pattern.h).
#pragma once

#include "lenses/lens.h"
#include "model/long_pattern.h"

namespace rankscope {

/// All samples, heads and rows at once, as a TileView has them, but for the matrix.
struct LongView {
  const LongPattern& pattern;
  TilePlace place;
  bool causal;
  int64_t window;
  const Packing& packing;
  const Packing* keys = nullptr;

  /// How many heads' rows, so many of each, are little beside what a pass holds anyway.
  int64_t heads_at_once(int64_t rows) const;

  /// The view of some rows of it, for code that reads tiles.
  TileView with(const at::Tensor& rows) const { return {rows, place, causal, window, packing, keys}; }
};

/// A Measurement of tiles that can do without them is one of these, too.
class LongMeasurement {
 public:
  virtual ~LongMeasurement() = default;
  /// What the last tile of these samples would have given.
  virtual at::Tensor long_pattern(const LongView& view) = 0;
};

}  // namespace rankscope
