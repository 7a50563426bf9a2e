// Attention over short contexts with tiny heads, for a stack of trials: scores never reach memory, the
// backward pass computes them again. Plain structs and raw pointers; kernels/cpu and kernels/cuda both speak
// this.
#pragma once

#include <cstdint>

namespace rankscope {

/// Rows of one operand: element (trial t, sequence s, token i, column c) is data[t*trial + (s*tokens + i)*row
/// + c]. A row stride larger than the width lets Q, K and V be slices of one projection.
struct Rows {
  int64_t trial = 0;
  int64_t row = 0;
};

/// out[t, s, i, head h] = sum_j softmax_j(scale_t * <q_i, k_j>) v_j over the columns of head h.
///
///   q [trials, sequences, queries, width_qk]    k [trials, sequences, keys, width_qk]
///   v [trials, sequences, keys, width_v]        out [trials, sequences, queries, width_v]
///
/// Trial t has heads[t] heads: each owns width_qk / heads[t] consecutive columns of q and k, and
/// width_v / heads[t] of v and out. With shared_values every head reads all of v: v is [.., keys, d_v], out
/// is [.., queries, heads[t] * d_v], and width_v is d_v.
struct SmallAttention {
  int64_t trials = 1, sequences = 1, queries = 1, keys = 1;
  int64_t width_qk = 1, width_v = 1;
  const int32_t* heads = nullptr;  // [trials], on the host
  const float* scale = nullptr;    // [trials], on the host; multiplies the scores
  bool hard = false;               // the first largest score takes all; no gradient reaches q and k
  bool shared_values = false;
  Rows q, k, v, out;  // the gradient of each operand has its own strides, given with it
};

}  // namespace rankscope
