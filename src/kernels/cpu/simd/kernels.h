// The kernels that exist once per instruction set, and the table by which one set is reached.
#pragma once

#include <cstdint>

#include "kernels/cpu/skip_norm.h"
#include "kernels/cpu/small_spectra.h"
#include "kernels/long_attention.h"
#include "kernels/running_attention.h"
#include "kernels/small_attention.h"

namespace rankscope::simd {

template <class T>
struct AttentionGradients {
  const T* out = nullptr;
  Rows out_rows;
  T *q = nullptr, *k = nullptr, *v = nullptr;
  Rows q_rows, k_rows, v_rows;
};

template <class T>
struct SkipNormGradients {
  const T* y = nullptr;
  int64_t y_row = 0;
  T* sum = nullptr;
  int64_t sum_row = 0;
  T *gain = nullptr, *bias = nullptr;
};

template <class T>
struct SquaredError {
  int64_t rows = 0, width = 0;
  T weight = 1;
  const T *answer = nullptr, *target = nullptr;
  T* gradient = nullptr;
  int64_t answer_row = 0, target_row = 0, gradient_row = 0;
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
template <class T>
using SkipNormForward = void(const SkipNorm&, const T* x, const T* u, const T* gain, const T* bias, T* y,
                             T* inverse);
template <class T>
using SkipNormBackward = void(const SkipNorm&, const T* x, const T* u, const T* gain, const T* inverse,
                              const SkipNormGradients<T>&);
template <class T>
using SquaredErrorLoss = double(const SquaredError<T>&);
template <class T>
using BiasRelu = void(int64_t rows, int64_t width, const T* bias, T* h, int64_t h_row);
template <class T>
using BiasReluBackward = void(int64_t rows, int64_t width, const T* h, int64_t h_row, T* dh, int64_t dh_row,
                              T* dbias);
template <class T>
using LinearForward = void(const LinearAttention&, const T* q, const T* k, const T* v, const T* keep, T* out);
template <class T>
using LinearBackward = void(const LinearAttention&, const T* q, const T* k, const T* v, const T* keep,
                            const T* dout, T* dq, T* dk, T* dv);
template <class T>
using DeltaForward = void(const DeltaAttention&, const DeltaInputs<T>&, T* out, T* states);
template <class T>
using DeltaBackward = void(const DeltaAttention&, const DeltaInputs<T>&, const T* states, const T* dout,
                           const DeltaGradients<T>&);
using FillNormals = void(uint64_t seed, uint32_t stream, uint32_t step, uint64_t first, int64_t count,
                         float* out);
using AdamWUpdate = void(const AdamWStep&, int64_t count, const float* gradient, float* parameter, float* m,
                         float* v);
using SmallSpectraGroup = int64_t();
using SmallSpectraOf = unsigned(const SmallSpectra&, const float* a, double* squares, double* centered);
using Tridiagonalise = void(int64_t n, const double* g, double* d, double* e);
using TridiagonalEigenvalues = unsigned(int64_t count, int64_t n, const double* d, const double* e,
                                        double* values);
using RowEntropy = double(const float* p, int64_t n);
using LongAttentionOf = void(const LongAttention&, const LongOperands&, const LongResults&, int64_t sample,
                             int64_t head, int64_t segment);

template <class T>
struct TableOf {
  AttentionForward<T>* attention_forward;
  AttentionBackward<T>* attention_backward;
  SkipNormForward<T>* skip_norm_forward;
  SkipNormBackward<T>* skip_norm_backward;
  SquaredErrorLoss<T>* squared_error;
  BiasRelu<T>* bias_relu;
  BiasReluBackward<T>* bias_relu_backward;
  LinearForward<T>* linear_forward;
  LinearBackward<T>* linear_backward;
  DeltaForward<T>* delta_forward;
  DeltaBackward<T>* delta_backward;
};

struct Table : TableOf<float>, TableOf<double> {
  FillNormals* fill_normals;
  AdamWUpdate* adamw_update;
  SmallSpectraGroup* small_spectra_group;
  SmallSpectraOf* small_spectra;
  Tridiagonalise* tridiagonalise;
  TridiagonalEigenvalues* tridiagonal_eigenvalues;
  RowEntropy* row_entropy;
  LongAttentionOf* long_attention;
};

#ifdef RANKSCOPE_SIMD
namespace RANKSCOPE_SIMD {
AttentionForward<float> attention_forward;
AttentionForward<double> attention_forward;
AttentionBackward<float> attention_backward;
AttentionBackward<double> attention_backward;
SkipNormForward<float> skip_norm_forward;
SkipNormForward<double> skip_norm_forward;
SkipNormBackward<float> skip_norm_backward;
SkipNormBackward<double> skip_norm_backward;
SquaredErrorLoss<float> squared_error;
SquaredErrorLoss<double> squared_error;
BiasRelu<float> bias_relu;
BiasRelu<double> bias_relu;
BiasReluBackward<float> bias_relu_backward;
BiasReluBackward<double> bias_relu_backward;
LinearForward<float> linear_forward;
LinearForward<double> linear_forward;
LinearBackward<float> linear_backward;
LinearBackward<double> linear_backward;
DeltaForward<float> delta_forward;
DeltaForward<double> delta_forward;
DeltaBackward<float> delta_backward;
DeltaBackward<double> delta_backward;
FillNormals fill_normals;
AdamWUpdate adamw_update;
SmallSpectraGroup small_spectra_group;
SmallSpectraOf small_spectra;
Tridiagonalise tridiagonalise;
TridiagonalEigenvalues tridiagonal_eigenvalues;
RowEntropy row_entropy;
LongAttentionOf long_attention;
}  // namespace RANKSCOPE_SIMD
#endif

}  // namespace rankscope::simd
