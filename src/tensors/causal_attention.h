// What LibTorch has for causal softmax attention. Its own header, so that nobody else is compiled again.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// softmax(q k^T / sqrt(width)) v over earlier tokens for [.., tokens, width]: the library's fused kernel
/// from LibTorch 2 on; before that products and a softmax.
at::Tensor causal_dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

}  // namespace rankscope
