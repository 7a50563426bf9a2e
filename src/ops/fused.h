// Which tensors the fused kernels take, and what they cannot do.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// False after RANKSCOPE_KERNELS=reference: every fused kernel off.
bool fused_kernels();

/// float32 on CUDA, where this build has kernels for it; float32 and float64 on the CPU.
bool fused_for(const at::Tensor& x);

/// Whether products on CUDA may be TF32's: torch's own setting, which a stack makes for its trials.
bool tf32_allowed();

/// x where it starts at a multiple of 16 bytes, as kernels want that read four floats at a time, else a copy:
/// contiguous() leaves a dense tensor alone wherever it starts.
at::Tensor aligned(const at::Tensor& x);

/// For backward passes. To autograd what a kernel writes is a constant: a graph built of it would leave terms
/// of a second derivative out without a word, so asking for one is an error.
void refuse_second_derivatives();

}  // namespace rankscope
