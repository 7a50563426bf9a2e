// The delta rule, gated or not, as an operator with a gradient, at a cost that grows with the number of
// tokens alone.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// A state S that looks up what it holds for a key and writes the difference, token by token,
///   u = write (v - keep S^T k),  S <- keep S + k u^T,  out = S^T q,
/// for q, k [B, T, d], v [B, T, e], write [B, T] and keep [B, T], or undefined where everything is kept.
/// Gives [B, T, e]. Keys longer than sqrt(2 / write) let the state grow without bound.
at::Tensor delta_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& write, const at::Tensor& keep);

/// The plain composition of the same, chunk by chunk, differentiable by torch.
at::Tensor delta_attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor& write, const at::Tensor& keep);

}  // namespace rankscope
