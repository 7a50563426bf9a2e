// The exact median of many numbers without sorting them.
#pragma once

#include <cstdint>

namespace rankscope::kernels {

/// Median of |x|, the mean of the middle two for an even count. NaN for an empty range or any NaN in it.
double median_magnitude(const float* x, int64_t count);
double median_magnitude(const double* x, int64_t count);

}  // namespace rankscope::kernels
