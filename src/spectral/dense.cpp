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

void gram_of_columns(const double* a, int64_t m, int64_t n, double* g) {
  if (lapack::have_lapack()) return lapack::gram_of_columns(a, m, n, g);
  const at::Tensor x = wrap(a, {m, n});
  copy_out(at::mm(x.t(), x), g);
}

void triangle(double* a, int64_t m, int64_t n, double* r) {
  if (lapack::have_lapack()) return lapack::triangle(a, m, n, r);
  copy_out(std::get<1>(at::linalg_qr(wrap(a, {m, n}).t(), "r")), r);
}

std::vector<std::complex<double>> hessenberg_eigenvalues(std::vector<double> h, int64_t n) {
  std::vector<std::complex<double>> values(static_cast<size_t>(n));
  if (!lapack::have_lapack()) {
    const at::Tensor found = at::view_as_real(at::linalg_eigvals(wrap(h.data(), {n, n}))).contiguous();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = {found.data_ptr<double>()[2 * i], found.data_ptr<double>()[2 * i + 1]};
    return values;
  }
  std::vector<double> real(values.size()), imaginary(values.size());
  if (!lapack::hessenberg_eigenvalues(h.data(), n, real.data(), imaginary.data()))
    throw Error("the eigenvalues of a Hessenberg matrix of " + std::to_string(n) + " rows did not converge");
  for (size_t i = 0; i < values.size(); ++i) values[i] = {real[i], imaginary[i]};
  return values;
}

void multiply_nt(const double* a, const double* b, int64_t m, int64_t n, int64_t k, double* c) {
  if (lapack::have_lapack()) return lapack::multiply_nt(a, b, m, n, k, c);
  copy_out(at::mm(wrap(a, {m, k}), wrap(b, {n, k}).t()), c);
}

}  // namespace rankscope::dense
