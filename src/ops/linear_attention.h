// Causal linear attention that may forget, as an operator with a gradient, at a cost that grows with the
// number of tokens alone.
#pragma once

#include <cstdint>

#include "base/tensor_fwd.h"

namespace rankscope {

/// out_i = sum_{j <= i} keep_{j+1} ... keep_i f(q_i . k_j) v_j for q, k [B, T, d], v [B, T, e] and keep
/// [B, T], or undefined where everything is kept; keep gets no gradient. f(s) is s for degree 0, otherwise
/// 1 + s + ... + s^degree / degree!, at most 3. Gives [B, T, e].
at::Tensor linear_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& keep, int64_t degree = 0);

/// The plain composition of the same, chunk by chunk, differentiable by torch.
at::Tensor linear_attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const at::Tensor& keep, int64_t degree = 0);

constexpr int64_t kMaxDegree = 3;
/// Sequences up to this long are compared pair by pair, without a state.
constexpr int64_t kPairTokens = 64;

/// C(width + degree, degree): rows of the state of that degree; `width` for degree 0.
int64_t monomial_count(int64_t width, int64_t degree);
/// The monomials of x [.., width], so that f(q . k) = sum of monomials(q) monomials(k): x itself for degree
/// 0.
at::Tensor monomials(const at::Tensor& x, int64_t degree);

}  // namespace rankscope
