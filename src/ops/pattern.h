// What attention patterns say row by row and column by column, with gradients.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

struct PatternStatistics {  // whoever handles it includes ATen
  at::Tensor entropy;       // [.., queries], of each row, in nats
  at::Tensor received;      // [.., keys], what each key gets, summed over the queries
};

/// pattern [.., queries, keys], float32 or float64. Entries not above zero, which is what a mask leaves,
/// have no entropy and get no gradient from it. On the CPU both sums are double precision's, one thread a
/// matrix; where a gradient is wanted and on CUDA the plain composition computes them.
PatternStatistics pattern_statistics(const at::Tensor& pattern);

/// The plain composition of the same, differentiable by torch.
PatternStatistics pattern_statistics_reference(const at::Tensor& pattern);

}  // namespace rankscope
