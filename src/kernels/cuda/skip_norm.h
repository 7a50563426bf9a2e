// A skip connection and the norm behind it, in one pass: y = norm(x + branch * u), for a stack of trials on
// CUDA. Rows are dense, [trials, tokens, width], width up to 256.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

constexpr int64_t kMaxNormWidth = 256;

enum class SkipNormKind {
  unit,   // y = gain * z / ||z||, one gain a trial
  rms,    // y = gain * z / sqrt(mean z^2 + epsilon), a gain for each column
  layer,  // y = gain * (z - mean) / sqrt(variance + epsilon) + bias
};

struct SkipNorm {
  SkipNormKind kind = SkipNormKind::unit;
  int64_t trials = 1, tokens = 1, width = 1;
  float branch = 1, epsilon = 1e-5f;  // unit norm knows no epsilon
  int64_t parameter_stride = 1;       // floats from one trial's gain (and bias) to the next
  int64_t gradient_stride = 1;        // the same of their gradients
};

/// u may be null (a norm without a skip); bias is read by `layer` alone.
void skip_norm_forward(const SkipNorm& n, const float* x, const float* u, const float* gain,
                       const float* bias, float* y, void* stream);

/// Floats of scratch memory the backward pass needs.
int64_t skip_norm_workspace(const SkipNorm& n);

/// Writes dx and du = branch * dx (du may be null), dgain and (layer) dbias. The parameters' gradients are
/// sums over tokens, taken in a fixed order.
void skip_norm_backward(const SkipNorm& n, const float* x, const float* u, const float* gain, const float* dy,
                        float* dx, float* du, float* dgain, float* dbias, float* workspace, void* stream);

}  // namespace rankscope::cuda
