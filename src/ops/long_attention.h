// Softmax attention over long texts without its matrix: output and statistics from tiles that stay in a cache
// or in the registers of a GPU (kernels/long_attention.h).
#pragma once

#include <cstdint>

#include "base/tensor_fwd.h"

namespace rankscope {

/// How scores are made: scale <q, k>, of the keys that a query sees.
struct LongMask {
  double scale = 1;
  bool causal = false;  // a query sees keys up to itself
  int64_t window = 0;   // > 0: only keys less than this far away
};

/// q [S, T, H, d], k [S, T', KV, d], v [S, T', VH, d_v], all dense; `sinks` [H], or undefined.
struct LongTensors {  // whoever handles it includes ATen
  at::Tensor q, k, v, sinks;
};

/// What is known of a matrix [T, T'] that was never held; all double.
struct LongStatistics {
  at::Tensor mass;      // [S, H, T]: sum of a row, 1 without a sink; NaN where the row is not finite
  at::Tensor entropy;   // [S, H, T]: of the row over its sum, in nats; undefined where it was not asked for
  at::Tensor received;  // [S, H, T']: column sums; likewise
};

/// Whether there is a kernel for these: float32, no gradient wanted, on CUDA heads of at most 128 channels.
bool long_attention_takes(const LongTensors& x, const LongMask& mask);

/// Writes `out` [S, T, H, d_v], dense.
LongStatistics long_attention(const LongTensors& x, const LongMask& mask, bool statistics,
                              const at::Tensor& out);

}  // namespace rankscope
