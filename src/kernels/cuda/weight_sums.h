// Attention over the sum of its weights, which is carried along as a value of one: before and behind
// linear_attention, on device pointers. A row is a token: `width` values, a one, zeros up to `padded`.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

struct WeightSums {
  int64_t rows, width, padded;
};

/// Floats of a row: `width` values and a one, up to a multiple of four, which kernels read at once.
constexpr int64_t padded_values(int64_t width) { return (width + 4) / 4 * 4; }

/// to [rows, padded] = v [rows, width], 1, 0 ...
void values_beside_ones(const WeightSums& a, const float* v, float* to, void* stream);
/// out [rows, width] = sums over their weight.
void over_weights(const WeightSums& a, const float* sums, float* out, void* stream);
/// dsums [rows, padded] of that.
void over_weights_backward(const WeightSums& a, const float* sums, const float* out, const float* dout,
                           float* dsums, void* stream);

}  // namespace rankscope::cuda
