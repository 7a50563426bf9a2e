// Attention over long texts on CUDA; what it computes says kernels/long_attention.h.
#pragma once

#include "kernels/long_attention.h"

namespace rankscope::cuda {

/// Heads of at most 128 channels, a multiple of four.
bool long_attention_takes(const LongAttention& a);

/// `rows` [samples, heads, queries, 2] is room for each row's largest score and what its exponentials are
/// multiplied by. Operands and `out` start at multiples of 16 bytes.
void long_attention(const LongAttention& a, const LongOperands& in, const LongResults& out, float* rows,
                    void* stream);

}  // namespace rankscope::cuda
