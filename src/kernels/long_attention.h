// Softmax attention over texts too long for their matrix: a tile of the matrix is made, measured, used up and
// forgotten. Plain structs and raw pointers; kernels/cpu and kernels/cuda both speak this.
#pragma once

#include <cstdint>

namespace rankscope {

/// out[s, i, h] = sum_j p_ij v_j, where p_ij = exp(scale <q_i, k_j>) / sum over the keys that query i sees,
/// to which a learned sink adds exp(sink_h).
///
///   q [samples, queries, heads, width_qk]      k [samples, key_heads, keys, width_qk]
///   out [samples, queries, heads, width_v]     v [samples, value_heads, keys, width_v]
///
/// Head h reads key head h / (heads / key_heads), and value heads likewise. Query i sees keys up to itself
/// where `causal`, and only those less than `window` away where that is not 0; either wants as many queries
/// as keys.
struct LongAttention {
  int64_t samples = 0, queries = 0, keys = 0;
  int64_t heads = 0, key_heads = 0, value_heads = 0;
  int64_t width_qk = 0, width_v = 0;
  float scale = 1;
  bool causal = false;
  int64_t window = 0;
};

struct LongOperands {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float* sinks = nullptr;  // [heads], or none
};

/// What is written. Without statistics `entropy` and `received` are null.
struct LongResults {
  float* out = nullptr;
  double* mass = nullptr;      // [samples, heads, queries]: the row's sum, 1 without a sink; NaN: not finite
  double* entropy = nullptr;   // [samples, heads, queries]: of the row over its sum, in nats
  double* received = nullptr;  // [samples, heads, segments, keys]: column sums over the queries of a segment
};

/// Columns are summed over segments of so many queries, whoever computes them; the caller adds these up.
/// There are at most 16: their sums must not grow like the matrix.
constexpr int64_t kLongSegment = 512, kMostLongSegments = 16;
constexpr int64_t long_segment_rows(const LongAttention& a) {
  constexpr int64_t unit = kLongSegment * kMostLongSegments;
  return a.queries <= unit ? kLongSegment : (a.queries + unit - 1) / unit * kLongSegment;
}
constexpr int64_t long_segments(const LongAttention& a) {
  return (a.queries + long_segment_rows(a) - 1) / long_segment_rows(a);
}

}  // namespace rankscope
