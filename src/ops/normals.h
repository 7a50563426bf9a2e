// Standard normals as a function of (seed, stream, step, index), as kernels/cpu/normals.h defines them: fused
// kernels where they exist, the same formula in tensor operations otherwise.
#pragma once

#include <cstdint>

#include "base/tensor_fwd.h"

namespace rankscope {

/// Numbers first to first + count of one stream, on the CPU: [count].
at::Tensor draw_normals(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, int64_t count);

/// Numbers 0 to count for each trial of a stack, on the device of `seeds` and `steps` (int64 [trials]):
/// [trials, count]. The steps are read there, so a captured graph moves on as they do.
at::Tensor draw_normals(const at::Tensor& seeds, uint32_t stream, const at::Tensor& steps, int64_t count);

/// The plain composition: Philox in 64-bit integers, Box-Muller in double precision.
at::Tensor draw_normals_reference(const at::Tensor& seeds, uint32_t stream, const at::Tensor& steps,
                                  int64_t first, int64_t count);

}  // namespace rankscope
