// Where a tensor of the pass is no longer finite: which token.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "model/sites.h"
#include "pass/crossing.h"

namespace rankscope {

/// The largest absolute entry of every row of x [N, d], or of every query of a tile [S, H, R, keys], sample
/// by sample: finite only if all are, and no sum can overflow on the way. On x's device: nobody waits for it.
at::Tensor largest_of_rows(const at::Tensor& x, const TilePlace& place);

/// Calls `found` with the first row of x [N, d] that holds NaN, Inf or a number whose square overflows, or
/// the first query of a tile that holds NaN or Inf, where there is one: at once, or when the crossing reads
/// it (Crossing::late).
void watch_finite(const at::Tensor& x, const TilePlace& place, Crossing& crossing,
                  std::function<void(int64_t row)> found);

/// "sample 3, token 5" of such a row.
std::string token_of(const Batch& batch, const TilePlace& place, int64_t row);

}  // namespace rankscope
