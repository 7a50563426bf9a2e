// A sample's attention, pooled to a size a page can hold, where it was computed.
#pragma once

#include "base/tensor_fwd.h"
#include "lenses/support/mask.h"

namespace rankscope {

/// Cells of a map: downwards and to the right.
struct MapSides {
  int64_t queries, keys;
};

struct PooledRows {
  at::Tensor map;       // [H, queries, keys]: mean over queries and sum over keys: rows still sum to one
  at::Tensor received;  // [H, T]: of each key, the mean over the queries that may see it
};

/// What rows first_row .. + R of attention p [H, R, T] add to both; in double, on p's device.
PooledRows pooled_rows(const at::Tensor& p, int64_t first_row, const Mask& mask, const MapSides& side);

}  // namespace rankscope
