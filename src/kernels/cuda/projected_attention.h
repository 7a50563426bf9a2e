// Self-attention from the tokens and the projection weights on Hopper's tensor cores. The factors of every
// product (projection, scores, mixing) are rounded to TF32, sums and softmax are float32. Q, K and V never
// reach memory; the backward pass makes them again and writes their gradients. For 16 tokens of width 64.
#pragma once

#include <cstdint>

#include "kernels/small_attention.h"

namespace rankscope::cuda {

constexpr int64_t kProjectedTokens = 16, kProjectedWidth = 64;

struct ProjectedAttention {
  int64_t trials = 1, sequences = 1;
  int64_t columns = 64;            // of Q, of K and of V
  const int32_t* heads = nullptr;  // [trials], on the host
  const float* scale = nullptr;    // [trials], on the host; multiplies the scores, not negative
  Rows x, out;
  int64_t W_trial = 0, b_trial = 0;  // floats between the trials of W and b
};

/// Whether the kernels take a trial with that many heads.
bool projected_attention_takes(int64_t tokens, int64_t width, int64_t columns, int64_t heads);

/// x [trials, sequences * 16, 64], W [trials, 3 columns, 64] (Q, K, V), b [trials, 3 columns] or null, out
/// [trials, sequences * 16, columns]. Everything 16-byte aligned, at most kMaxTrials trials a call.
void projected_attention_forward(const ProjectedAttention& a, const float* x, const float* W, const float* b,
                                 float* out, void* stream);

/// dqkv [trials, sequences * 16, 3 columns] from dout [trials, sequences * 16, columns].
void projected_attention_backward(const ProjectedAttention& a, const float* x, const float* W, const float* b,
                                  const float* dout, Rows dout_rows, float* dqkv, Rows dqkv_rows,
                                  void* stream);

}  // namespace rankscope::cuda
