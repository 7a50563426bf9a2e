// Running attention (kernels/running_attention.h) on device pointers, for `sequences` one behind another in
// every operand. `tf32`: factors of products may be rounded to TF32; otherwise products are as exact as
// float32's. Monomials, where there are any, are device arrays.
#pragma once

#include "kernels/running_attention.h"

namespace rankscope::cuda {

/// Whether the kernels take heads of this width: what a block carries along must fit into shared memory.
constexpr int64_t kMaxRunningWidth = 128, kMaxPolynomialWidth = 112;
constexpr bool running_attention_takes(int64_t width_qk, int64_t degree = 0) {
  return width_qk <= (degree == 0 ? kMaxRunningWidth : kMaxPolynomialWidth);
}

/// Floats that a call works in.
int64_t linear_attention_workspace(const LinearAttention& a, int64_t sequences, bool backward);
void linear_attention_forward(const LinearAttention& a, int64_t sequences, bool tf32, const float* q,
                              const float* k, const float* v, const float* keep, float* out, float* work,
                              void* stream);
/// Writes (does not add to) dq, dk and dv.
void linear_attention_backward(const LinearAttention& a, int64_t sequences, bool tf32, const float* q,
                               const float* k, const float* v, const float* keep, const float* dout,
                               float* dq, float* dk, float* dv, float* work, void* stream);

/// Floats that the way forth leaves for the way back, and that the way back works in beside them.
int64_t delta_attention_saved(const DeltaAttention& a, int64_t sequences);
int64_t delta_attention_workspace(const DeltaAttention& a, int64_t sequences);
void delta_attention_forward(const DeltaAttention& a, int64_t sequences, bool tf32,
                             const DeltaInputs<float>& in, float* out, float* saved, void* stream);
/// Writes (does not add to) the gradients.
void delta_attention_backward(const DeltaAttention& a, int64_t sequences, bool tf32,
                              const DeltaInputs<float>& in, const float* saved, const float* dout,
                              const DeltaGradients<float>& d, float* work, void* stream);

}  // namespace rankscope::cuda
