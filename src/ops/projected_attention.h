// Self-attention from the tokens and the projection weights, as an operator with a gradient. Where TF32 is
// allowed on CUDA, Q, K and V of the shapes that kernels/cuda/projected_attention.h takes never reach memory;
// elsewhere it is a product (ops/linear.h) and attention (ops/small_attention.h).
#pragma once

#include "ops/small_attention.h"

namespace rankscope {

/// x [trials?, sequences * tokens, width], W [trials?, 2 * width_qk + width_v, width] of Q, K and V one after
/// the other, b [trials?, 2 * width_qk + width_v] or undefined. Gives [trials?, sequences * tokens, width_v].
at::Tensor projected_self_attention(const at::Tensor& x, const at::Tensor& W, const at::Tensor& b,
                                    int64_t tokens, const HeadShape& shape);

}  // namespace rankscope
