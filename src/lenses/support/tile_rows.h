// The rows of some queries, where a pattern comes tile by tile.
#pragma once

#include <cstdint>
#include <vector>

#include "lenses/lens.h"

namespace rankscope {

struct TileRows {                // whoever handles it includes ATen
  at::Tensor rows;               // [S, H, queries, keys]
  std::vector<int64_t> queries;  // which of the sample's they are; none: the tile has none of them
};

/// Of `queries`, ascending, those that this tile holds.
TileRows rows_of(const TileView& view, const std::vector<int64_t>& queries);

}  // namespace rankscope
