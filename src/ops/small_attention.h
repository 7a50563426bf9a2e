// Attention over short contexts with tiny heads, as an operator with a gradient: fused kernels where they
// exist, a plain composition of tensor operations otherwise. As everywhere in ops/, the functions trust their
// callers, and the operator of the same name checks (docs/OPERATORS.md).
#pragma once

#include <cstdint>
#include <vector>

#include "base/tensor_fwd.h"
#include "ops/fused.h"

namespace rankscope {

/// How the columns split into heads. Rank may differ between the trials of a stack, so there is one entry a
/// trial.
struct HeadShape {
  std::vector<int32_t> heads;
  std::vector<float> scale;  // multiplies the scores
  int64_t width_qk = 0;      // heads * rank, the same for every trial
  int64_t width_v = 0;       // heads * value rank; with shared values the width of v itself
  bool hard = false;
  bool shared_values = false;
};

/// Self-attention from one projection: qkv [trials?, sequences * tokens, 2 * width_qk + width_v], Q, K and V
/// side by side. Gives [trials?, sequences * tokens, width_v].
at::Tensor small_self_attention(const at::Tensor& qkv, int64_t tokens, const HeadShape& shape);

/// What that does, without a gradient and into tensors that are there: out [trials, rows, width_v] from qkv
/// [trials, rows, ...], and dqkv from dout. For operators that hold both.
void self_attention_forward(const at::Tensor& qkv, int64_t tokens, const HeadShape& shape,
                            const at::Tensor& out);
void self_attention_backward(const at::Tensor& qkv, const at::Tensor& dout, int64_t tokens,
                             const HeadShape& shape, const at::Tensor& dqkv);

/// Attention with separate queries: q [trials?, sequences * queries, width_qk], k and v
/// [trials?, sequences * keys, ...]. Gives [trials?, sequences * queries, width_v], or heads * width_v with
/// shared values.
at::Tensor small_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t queries,
                           int64_t keys, const HeadShape& shape);

/// The plain composition of the same, differentiable by torch: what the fused kernels are held to.
at::Tensor small_attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     int64_t queries, int64_t keys, const HeadShape& shape);

}  // namespace rankscope
