// Causal attention whose weights are a polynomial of the scores, as an operator with a gradient.
#pragma once

#include <cstdint>

#include "base/tensor_fwd.h"

namespace rankscope {

/// out_i = sum_{j <= i} f(q_i . k_j) v_j / sum_{j <= i} f(q_i . k_j) for q, k [B, T, d] and v [B, T, e], with
/// f(s) = 1 + s + ... + s^degree / degree!, degree 1 to 3: linear_attention over the sum of its weights.
/// Gives [B, T, e].
at::Tensor polynomial_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                int64_t degree);

/// The plain composition of the same, chunk by chunk, differentiable by torch.
at::Tensor polynomial_attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          int64_t degree);

}  // namespace rankscope
