// Which tensors the fused kernels take.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// False after RANKSCOPE_KERNELS=reference: every fused kernel off.
bool fused_kernels();

/// float32 on CUDA, where this build has kernels for it; float32 and float64 on the CPU.
bool fused_for(const at::Tensor& x);

/// x where it starts at a multiple of 16 bytes, as kernels want that read four floats at a time, else a copy:
/// contiguous() leaves a dense tensor alone wherever it starts.
at::Tensor aligned(const at::Tensor& x);

}  // namespace rankscope
