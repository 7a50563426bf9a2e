// A sample's attention, pooled to a size a page can hold, where it was computed.
#pragma once

#include "base/tensor_fwd.h"
#include "lenses/support/mask.h"

namespace rankscope {

struct PooledRows {
  at::Tensor map;       // [H, side, side]: mean over queries and sum over keys, so that rows still sum to one
  at::Tensor received;  // [H, T]: of each key, the mean over the queries that may see it
};

/// What rows first_row .. + R of attention p [H, R, T] add to both; in double, on p's device.
PooledRows pooled_rows(const at::Tensor& p, int64_t first_row, const Mask& mask, int64_t side);

}  // namespace rankscope
