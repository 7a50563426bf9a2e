// Entropy of a row of attention.
#pragma once

#include <cstdint>

namespace rankscope {

/// -sum p log p over the normal numbers of p [n] above zero, in double precision: each logarithm to 3e-16 of
/// itself.
double row_entropy(const float* p, int64_t n);

}  // namespace rankscope
