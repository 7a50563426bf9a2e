// Where a tensor of the pass is no longer finite: which token, as a number on the tensor's own device.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "model/sites.h"
#include "pass/crossing.h"

namespace rankscope {

/// The first row of x [N, d] that holds NaN, Inf or a number whose square overflows, or the first of the
/// queries of a tile [S, H, R, keys], sample by sample, that holds NaN or Inf; -1 where none does. One double
/// on x's device: nobody waits for it.
at::Tensor not_finite_flag(const at::Tensor& x, const TilePlace& place);

/// Calls `found` with such a row, where there is one: at once, or when the crossing reads it
/// (Crossing::late).
void watch_finite(const at::Tensor& x, const TilePlace& place, Crossing& crossing,
                  std::function<void(int64_t row)> found);

/// "sample 3, token 5" of such a row.
std::string token_of(const Batch& batch, const TilePlace& place, int64_t row);

}  // namespace rankscope
