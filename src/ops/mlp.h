// The MLP of a block, relu(x W_in^T + b_in) W_out^T + b_out, as an operator with a gradient.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// x [M, d] with W_in [hidden, d], b_in [hidden], W_out [out, hidden], b_out [out], or each with a leading
/// [trials]. Either bias may be undefined. Gives [trials?, M, out].
at::Tensor mlp(const at::Tensor& x, const at::Tensor& W_in, const at::Tensor& b_in, const at::Tensor& W_out,
               const at::Tensor& b_out);

/// The plain composition of the same, differentiable by torch: what the fused kernels are held to.
at::Tensor mlp_reference(const at::Tensor& x, const at::Tensor& W_in, const at::Tensor& b_in,
                         const at::Tensor& W_out, const at::Tensor& b_out);

}  // namespace rankscope
