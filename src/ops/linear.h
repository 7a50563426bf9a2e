// x W^T + b for a stack of trials.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// x [M, in] with W [out, in], or both with a leading [trials]; b [out] or [trials, out], or undefined.
at::Tensor linear(const at::Tensor& x, const at::Tensor& W, const at::Tensor& b);

/// [x | 1 | 0]: a column of ones beside the tokens of a stack, padded to whole vectors. Beside it a bias is
/// one more column of W.
at::Tensor with_ones(const at::Tensor& x);

struct WeightGradients {
  at::Tensor W, b;  // views of one tensor; whoever reads them includes ATen
};

/// The gradients of W and b out of one product, dy [trials, M, out] and with_ones(x).
WeightGradients weight_gradients(const at::Tensor& dy, const at::Tensor& wide);

}  // namespace rankscope
