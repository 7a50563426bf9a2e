// Attention over long texts on the CPU; what it computes says kernels/long_attention.h.
#pragma once

#include "kernels/long_attention.h"

namespace rankscope {

/// One segment of the queries of one head, on one thread. What it keeps, some 32 rows of the matrix at a
/// time, is meant to stay in the second-level cache.
void long_attention(const LongAttention& a, const LongOperands& in, const LongResults& out, int64_t sample,
                    int64_t head, int64_t segment);

}  // namespace rankscope
