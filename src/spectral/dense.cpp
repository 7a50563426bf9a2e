#include "spectral/dense.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/lapack.h"

namespace rankscope::dense {
namespace {

at::Tensor wrap(const double* a, at::IntArrayRef shape) {
  return at::from_blob(const_cast<double*>(a), shape, at::TensorOptions().dtype(at::kDouble));
}

void copy_out(const at::Tensor& from, double* to) {
  const at::Tensor dense = from.contiguous();
  std::copy_n(dense.data_ptr<double>(), dense.numel(), to);
}

}  // namespace

void singular_values(double* a, int64_t m, int64_t n, double* values) {
  if (!lapack::have_lapack()) {
    copy_out(at::linalg_svdvals(wrap(a, {m, n})), values);
  } else if (!lapack::singular_values(a, m, n, values)) {
    throw Error("the singular values of a " + std::to_string(m) + " x " + std::to_string(n) +
                " matrix did not converge");
  }
}

bool symmetric_eigenvalues(double* g, int64_t n, double* values) {
  if (lapack::have_lapack()) return lapack::symmetric_eigenvalues(g, n, values);
  copy_out(at::linalg_eigvalsh(wrap(g, {n, n}), "U"), values);
  return true;
}

void gram(const double* a, int64_t m, int64_t n, double* g) {
  if (lapack::have_lapack()) return lapack::gram(a, m, n, g);
  const at::Tensor x = wrap(a, {m, n});
  copy_out(m <= n ? at::mm(x, x.t()) : at::mm(x.t(), x), g);
}

void triangle(double* a, int64_t m, int64_t n, double* r) {
  if (lapack::have_lapack()) return lapack::triangle(a, m, n, r);
  copy_out(std::get<1>(at::linalg_qr(wrap(a, {m, n}).t(), "r")), r);
}

void multiply_nt(const double* a, const double* b, int64_t m, int64_t n, int64_t k, double* c) {
  if (lapack::have_lapack()) return lapack::multiply_nt(a, b, m, n, k, c);
  copy_out(at::mm(wrap(a, {m, k}), wrap(b, {n, k}).t()), c);
}

}  // namespace rankscope::dense
