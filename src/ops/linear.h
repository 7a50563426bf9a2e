// x W^T + b for a stack of trials.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// x [M, in] with W [out, in], or both with a leading [trials]; b [out] or [trials, out], or undefined.
at::Tensor linear(const at::Tensor& x, const at::Tensor& W, const at::Tensor& b);

}  // namespace rankscope
