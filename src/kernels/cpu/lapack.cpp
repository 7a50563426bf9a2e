#include "kernels/cpu/lapack.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

extern "C" {
// gfortran passes the length of every CHARACTER argument after the others.
void dgesdd_(const char*, const int*, const int*, double*, const int*, double*, double*, const int*, double*,
             const int*, double*, const int*, int*, int*, size_t);
void dgesvd_(const char*, const char*, const int*, const int*, double*, const int*, double*, double*,
             const int*, double*, const int*, double*, const int*, int*, size_t, size_t);
void dsyevd_(const char*, const char*, const int*, double*, const int*, double*, double*, const int*, int*,
             const int*, int*, size_t, size_t);
void dgeqrf_(const int*, const int*, double*, const int*, double*, double*, const int*, int*);
void dhseqr_(const char*, const char*, const int*, const int*, const int*, double*, const int*, double*,
             double*, double*, const int*, double*, const int*, int*, size_t, size_t);
void dsyrk_(const char*, const char*, const int*, const int*, const double*, const double*, const int*,
            const double*, double*, const int*, size_t, size_t);
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*,
            const int*, const double*, const int*, const double*, double*, const int*, size_t, size_t);
}

namespace rankscope::lapack {
namespace {

double* workspace(int size) {
  thread_local std::vector<double> kept;
  if (kept.size() < static_cast<size_t>(size)) kept.resize(static_cast<size_t>(size));
  return kept.data();
}

constexpr int kQuery = -1;
constexpr int kOne = 1;

}  // namespace

bool have_lapack() { return true; }

bool singular_values(double* a, int64_t rows, int64_t cols, double* values) {
  if (rows == 0 || cols == 0) return true;
  const int m = static_cast<int>(cols), n = static_cast<int>(rows);  // the transpose, as Fortran sees it
  thread_local std::vector<double> copy;                             // for the second try
  copy.assign(a, a + rows * cols);
  thread_local std::vector<int> iwork;
  iwork.resize(8 * static_cast<size_t>(std::min(m, n)));
  int info = 0;
  double best = 0;
  const auto divide_and_conquer = [&](double* work, int lwork) {
    dgesdd_("N", &m, &n, a, &m, values, nullptr, &kOne, nullptr, &kOne, work, &lwork, iwork.data(), &info, 1);
  };
  divide_and_conquer(&best, kQuery);
  const int first = static_cast<int>(best);
  divide_and_conquer(workspace(first), first);
  if (info == 0) return true;
  // It fails on rare inputs where plain QR iteration does not.
  const auto iterate = [&](double* work, int lwork) {
    dgesvd_("N", "N", &m, &n, copy.data(), &m, values, nullptr, &kOne, nullptr, &kOne, work, &lwork, &info, 1,
            1);
  };
  iterate(&best, kQuery);
  const int second = static_cast<int>(best);
  iterate(workspace(second), second);
  return info == 0;
}

bool symmetric_eigenvalues(double* g, int64_t size, double* values) {
  if (size == 0) return true;
  const int n = static_cast<int>(size);
  int info = 0, integers = 0;
  double best = 0;
  dsyevd_("N", "L", &n, g, &n, values, &best, &kQuery, &integers, &kQuery, &info, 1, 1);
  const int lwork = static_cast<int>(best), liwork = integers;
  thread_local std::vector<int> iwork;
  iwork.resize(static_cast<size_t>(std::max(1, liwork)));
  dsyevd_("N", "L", &n, g, &n, values, workspace(lwork), &lwork, iwork.data(), &liwork, &info, 1, 1);
  return info == 0;
}

void gram(const double* a, int64_t rows, int64_t cols, double* g) {
  if (rows == 0 || cols == 0) return;
  const bool wide = rows <= cols;
  const int n = static_cast<int>(std::min(rows, cols)), k = static_cast<int>(std::max(rows, cols));
  const int stride = static_cast<int>(cols);
  const double one = 1, zero = 0;
  dsyrk_("L", wide ? "T" : "N", &n, &k, &one, a, &stride, &zero, g, &n, 1, 1);
}

void gram_of_columns(const double* a, int64_t rows, int64_t cols, double* g) {
  const int n = static_cast<int>(cols), k = static_cast<int>(rows);
  if (n == 0) return;
  const double one = 1, zero = 0;
  dsyrk_("L", "N", &n, &k, &one, a, &n, &zero, g, &n, 1, 1);
}

void triangle(double* a, int64_t rows, int64_t cols, double* r) {
  const int m = static_cast<int>(cols), n = static_cast<int>(rows);
  thread_local std::vector<double> tau;
  tau.resize(static_cast<size_t>(std::min(m, n)));
  int info = 0;
  double best = 0;
  dgeqrf_(&m, &n, a, &m, tau.data(), &best, &kQuery, &info);
  const int lwork = static_cast<int>(best);
  dgeqrf_(&m, &n, a, &m, tau.data(), workspace(lwork), &lwork, &info);
  for (int64_t i = 0; i < std::min(rows, cols); ++i)  // column j of the triangle lies in row j of a
    for (int64_t j = 0; j < rows; ++j) r[i * rows + j] = j < i ? 0.0 : a[j * cols + i];
}

bool hessenberg_eigenvalues(double* h, int64_t size, double* real, double* imaginary) {
  if (size == 0) return true;
  const int n = static_cast<int>(size), lwork = 11 * n;  // what dhseqr calls good
  // Fortran reads the rows as columns: transposed in place, the matrix is Hessenberg again.
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < i; ++j) std::swap(h[i * size + j], h[j * size + i]);
  int info = 0;
  dhseqr_("E", "N", &n, &kOne, &n, h, &n, real, imaginary, nullptr, &kOne, workspace(lwork), &lwork, &info, 1,
          1);
  return info == 0;
}

void multiply_nt(const double* a, const double* b, int64_t rows, int64_t cols, int64_t inner, double* c) {
  const int m = static_cast<int>(rows), n = static_cast<int>(cols), k = static_cast<int>(inner);
  const double one = 1, zero = 0;
  dgemm_("T", "N", &n, &m, &k, &one, b, &k, a, &k, &zero, c, &n, 1, 1);
}

}  // namespace rankscope::lapack
