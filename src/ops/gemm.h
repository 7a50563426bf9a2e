// The matrix product on raw pointers, for operators that work through a tile piece by piece: no tensor is
// made for a piece. gemm_blas.cpp calls the BLAS that is linked; where there is none gemm_torch.cpp asks
// LibTorch.
#pragma once

#include <cstdint>

namespace rankscope {

enum class Turn { no, yes };

/// A matrix by its rows: row i starts at data + i * row.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t row = 0;
};

/// c [m, n] = alpha a b + beta c, with a [m, k] and b [k, n]; a turned operand lies transposed in memory.
/// With beta = 0 what was in c does not matter. One thread inside a parallel region.
void gemm(Turn turn_a, Turn turn_b, int64_t m, int64_t n, int64_t k, float alpha, Matrix<const float> a,
          Matrix<const float> b, float beta, Matrix<float> c);
void gemm(Turn turn_a, Turn turn_b, int64_t m, int64_t n, int64_t k, double alpha, Matrix<const double> a,
          Matrix<const double> b, double beta, Matrix<double> c);

}  // namespace rankscope
