// The kernels that exist once per instruction set, and the table by which one set is reached.
#pragma once

#include <cstdint>

#include "kernels/small_attention.h"

namespace rankscope::simd {

template <class T>
struct AttentionGradients {
  const T* out = nullptr;
  Rows out_rows;
  T *q = nullptr, *k = nullptr, *v = nullptr;
  Rows q_rows, k_rows, v_rows;
};

/// What one AdamW step needs after its powers are taken.
struct AdamWStep {
  float keep = 1;  // 1 - lr * weight decay
  float beta1 = 0, one_minus_beta1 = 1, beta2 = 0, one_minus_beta2 = 1;
  float rate = 0;             // lr / (1 - beta1^step)
  float root_correction = 1;  // 1 / sqrt(1 - beta2^step)
  float epsilon = 0;
};

template <class T>
using AttentionForward = void(const SmallAttention&, const T* q, const T* k, const T* v, T* out);
template <class T>
using AttentionBackward = void(const SmallAttention&, const T* q, const T* k, const T* v,
                               const AttentionGradients<T>&);
using FillNormals = void(uint64_t seed, uint32_t stream, uint32_t step, uint64_t first, int64_t count,
                         float* out);
using AdamWUpdate = void(const AdamWStep&, int64_t count, const float* gradient, float* parameter, float* m,
                         float* v);

struct Table {
  AttentionForward<float>* forward_float;
  AttentionForward<double>* forward_double;
  AttentionBackward<float>* backward_float;
  AttentionBackward<double>* backward_double;
  FillNormals* fill_normals;
  AdamWUpdate* adamw_update;
};

#ifdef RANKSCOPE_SIMD
namespace RANKSCOPE_SIMD {
AttentionForward<float> attention_forward;
AttentionForward<double> attention_forward;
AttentionBackward<float> attention_backward;
AttentionBackward<double> attention_backward;
FillNormals fill_normals;
AdamWUpdate adamw_update;
}  // namespace RANKSCOPE_SIMD
#endif

}  // namespace rankscope::simd
