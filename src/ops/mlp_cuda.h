// The CUDA half of ops/mlp.h.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// Whether the fused kernels take these: TF32 products are allowed, and the shapes are theirs.
bool mlp_cuda_takes(const at::Tensor& x, const at::Tensor& W_in, const at::Tensor& W_out);

at::Tensor mlp_cuda(const at::Tensor& x, const at::Tensor& W_in, const at::Tensor& b_in,
                    const at::Tensor& W_out, const at::Tensor& b_out);

}  // namespace rankscope
