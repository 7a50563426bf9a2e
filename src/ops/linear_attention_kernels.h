// The kernels of linear attention on tensors that are contiguous and checked, without a graph: what the
// operators with gradients are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tensor_fwd.h"

namespace rankscope {

/// Whether there are kernels for operands like these; otherwise the plain composition is all there is. Longer
/// sequences of a width whose state no memory holds have neither, and are refused.
bool linear_attention_is_fused(const at::Tensor& q, const at::Tensor& v, int64_t degree);

/// linear_attention; keep without elements: everything is kept.
at::Tensor linear_attention_values(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const at::Tensor& keep, int64_t degree);
/// Those of q, k and v.
std::vector<at::Tensor> linear_attention_gradients(const at::Tensor& q, const at::Tensor& k,
                                                   const at::Tensor& v, const at::Tensor& keep,
                                                   int64_t degree, const at::Tensor& dout);

}  // namespace rankscope
