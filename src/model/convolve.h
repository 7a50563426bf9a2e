// A short causal convolution over the tokens of packed samples, channel by channel.
#pragma once

#include "base/tensor_fwd.h"
#include "model/batch.h"

namespace rankscope {

/// y_t = sum_j W[:, taps - 1 - j] x_{t - j} for x [.., N, C] and W [C, taps]. What would stand before the
/// first token of a sample is zero.
at::Tensor convolve(const at::Tensor& x, const at::Tensor& W, const Batch& batch);

/// Its adjoint in x: x_t = sum_j W[:, taps - 1 - j] y_{t + j}.
at::Tensor convolve_back(const at::Tensor& y, const at::Tensor& W, const Batch& batch);

}  // namespace rankscope
