#include "kernels/cpu/simd/kernels.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

template <class T>
void forward(int64_t rows, int64_t width, const T* __restrict bias, T* h, int64_t h_row) {
  for (int64_t i = 0; i < rows; ++i) {
    T* __restrict row = h + i * h_row;
    for (int64_t c = 0; c < width; ++c) {
      const T x = row[c] + bias[c];
      row[c] = x < 0 ? T(0) : x;
    }
  }
}

template <class T>
void backward(int64_t rows, int64_t width, const T* h, int64_t h_row, T* dh, int64_t dh_row,
              T* __restrict dbias) {
  for (int64_t i = 0; i < rows; ++i) {
    T* __restrict slope = dh + i * dh_row;
    if (h) {
      const T* __restrict kept = h + i * h_row;
      for (int64_t c = 0; c < width; ++c) slope[c] = kept[c] == 0 ? T(0) : slope[c];
    }
    if (dbias)
      for (int64_t c = 0; c < width; ++c) dbias[c] += slope[c];
  }
}

}  // namespace

void bias_relu(int64_t rows, int64_t width, const float* bias, float* h, int64_t h_row) {
  forward(rows, width, bias, h, h_row);
}
void bias_relu(int64_t rows, int64_t width, const double* bias, double* h, int64_t h_row) {
  forward(rows, width, bias, h, h_row);
}
void bias_relu_backward(int64_t rows, int64_t width, const float* h, int64_t h_row, float* dh, int64_t dh_row,
                        float* dbias) {
  backward(rows, width, h, h_row, dh, dh_row, dbias);
}
void bias_relu_backward(int64_t rows, int64_t width, const double* h, int64_t h_row, double* dh,
                        int64_t dh_row, double* dbias) {
  backward(rows, width, h, h_row, dh, dh_row, dbias);
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
