// Stands in where no BLAS is linked.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "ops/gemm.h"

namespace rankscope {
namespace {

template <class T>
at::Tensor view(Matrix<T> x, int64_t rows, int64_t columns, Turn turn = Turn::no) {
  using Element = std::remove_const_t<T>;
  const bool turned = turn == Turn::yes;
  return at::from_blob(const_cast<Element*>(x.data), {rows, columns},
                       {turned ? 1 : x.row, turned ? x.row : 1}, at::dtype<Element>());
}

template <class T>
void call(Turn turn_a, Turn turn_b, int64_t m, int64_t n, int64_t k, T alpha, Matrix<const T> a,
          Matrix<const T> b, T beta, Matrix<T> c) {
  if (m == 0 || n == 0) return;
  const c10::NoGradGuard no_gradients;
  at::Tensor out = view(c, m, n);
  at::addmm_out(out, out, view(a, m, k, turn_a), view(b, k, n, turn_b), beta, alpha);
}

}  // namespace

void gemm(Turn turn_a, Turn turn_b, int64_t m, int64_t n, int64_t k, float alpha, Matrix<const float> a,
          Matrix<const float> b, float beta, Matrix<float> c) {
  call(turn_a, turn_b, m, n, k, alpha, a, b, beta, c);
}
void gemm(Turn turn_a, Turn turn_b, int64_t m, int64_t n, int64_t k, double alpha, Matrix<const double> a,
          Matrix<const double> b, double beta, Matrix<double> c) {
  call(turn_a, turn_b, m, n, k, alpha, a, b, beta, c);
}

}  // namespace rankscope
