// A skip connection and the norm behind it, as an operator with a gradient: fused kernels where they exist, a
// plain composition of tensor operations otherwise.
#pragma once

#include "base/tensor_fwd.h"
#include "kernels/cpu/skip_norm.h"

namespace rankscope {

/// norm(x + u) of rows x [rows, width] or [trials, rows, width], as kernels/cpu/skip_norm.h defines it; u is
/// of the same shape, or undefined: a norm without a skip. gain is [1] under the unit norm, else [width],
/// bias (layer norm only) [width], both with [trials] in front where x has it.
at::Tensor skip_norm(SkipNorm::Kind kind, const at::Tensor& x, const at::Tensor& u, const at::Tensor& gain,
                     const at::Tensor& bias);

/// The plain composition of the same, differentiable by torch: what the fused kernels are held to.
at::Tensor skip_norm_reference(SkipNorm::Kind kind, const at::Tensor& x, const at::Tensor& u,
                               const at::Tensor& gain, const at::Tensor& bias);

}  // namespace rankscope
