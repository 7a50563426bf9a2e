#include <algorithm>
#include <cstddef>

#include "ops/gemm.h"

extern "C" {
// gfortran passes the length of every CHARACTER argument after the others.
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
            const int*, const float*, const int*, const float*, float*, const int*, size_t, size_t);
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*,
            const int*, const double*, const int*, const double*, double*, const int*, size_t, size_t);
}

namespace rankscope {
namespace {

// Fortran reads rows as columns: it is asked for c^T = b^T a^T.
template <class T, class Blas>
void call(Blas blas, Turn turn_a, Turn turn_b, int64_t m, int64_t n, int64_t k, T alpha, Matrix<const T> a,
          Matrix<const T> b, T beta, Matrix<T> c) {
  if (m == 0 || n == 0) return;
  const auto letter = [](Turn turn) { return turn == Turn::yes ? "T" : "N"; };
  const auto stride = [](int64_t row) { return static_cast<int>(std::max<int64_t>(row, 1)); };
  const int rows = static_cast<int>(n), columns = static_cast<int>(m), inner = static_cast<int>(k);
  const int lda = stride(b.row), ldb = stride(a.row), ldc = stride(c.row);
  blas(letter(turn_b), letter(turn_a), &rows, &columns, &inner, &alpha, b.data, &lda, a.data, &ldb, &beta,
       c.data, &ldc, 1, 1);
}

}  // namespace

void gemm(Turn turn_a, Turn turn_b, int64_t m, int64_t n, int64_t k, float alpha, Matrix<const float> a,
          Matrix<const float> b, float beta, Matrix<float> c) {
  call(sgemm_, turn_a, turn_b, m, n, k, alpha, a, b, beta, c);
}
void gemm(Turn turn_a, Turn turn_b, int64_t m, int64_t n, int64_t k, double alpha, Matrix<const double> a,
          Matrix<const double> b, double beta, Matrix<double> c) {
  call(dgemm_, turn_a, turn_b, m, n, k, alpha, a, b, beta, c);
}

}  // namespace rankscope
