#include "kernels/cpu/lapack.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

extern "C" {
// gfortran passes the length of every CHARACTER argument after the others.
void sgesdd_(const char*, const int*, const int*, float*, const int*, float*, float*, const int*, float*,
             const int*, float*, const int*, int*, int*, size_t);
void dgesdd_(const char*, const int*, const int*, double*, const int*, double*, double*, const int*, double*,
             const int*, double*, const int*, int*, int*, size_t);
void sgesvd_(const char*, const char*, const int*, const int*, float*, const int*, float*, float*, const int*,
             float*, const int*, float*, const int*, int*, size_t, size_t);
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

template <class T>
T* workspace(size_t size) {
  thread_local std::vector<T> kept;
  if (kept.size() < size) kept.resize(size);
  return kept.data();
}

constexpr int kQuery = -1;
constexpr int kOne = 1;

int gesdd(int m, int n, float* a, float* s, float* work, int lwork, int* iwork) {
  int info = 0;
  sgesdd_("N", &m, &n, a, &m, s, nullptr, &kOne, nullptr, &kOne, work, &lwork, iwork, &info, 1);
  return info;
}
int gesdd(int m, int n, double* a, double* s, double* work, int lwork, int* iwork) {
  int info = 0;
  dgesdd_("N", &m, &n, a, &m, s, nullptr, &kOne, nullptr, &kOne, work, &lwork, iwork, &info, 1);
  return info;
}
int gesvd(int m, int n, float* a, float* s, float* work, int lwork) {
  int info = 0;
  sgesvd_("N", "N", &m, &n, a, &m, s, nullptr, &kOne, nullptr, &kOne, work, &lwork, &info, 1, 1);
  return info;
}
int gesvd(int m, int n, double* a, double* s, double* work, int lwork) {
  int info = 0;
  dgesvd_("N", "N", &m, &n, a, &m, s, nullptr, &kOne, nullptr, &kOne, work, &lwork, &info, 1, 1);
  return info;
}

template <class T>
bool svd(T* a, int64_t rows, int64_t cols, T* values) {
  if (rows == 0 || cols == 0) return true;
  const int m = static_cast<int>(cols), n = static_cast<int>(rows);  // the transpose, as Fortran sees it
  // Divide and conquer fails on rare inputs where plain QR iteration does not; the copy for that case costs
  // little.
  thread_local std::vector<T> copy;
  copy.assign(a, a + rows * cols);
  thread_local std::vector<int> iwork;
  iwork.resize(8 * static_cast<size_t>(std::min(m, n)));
  T best = 0;
  gesdd(m, n, a, values, &best, kQuery, iwork.data());
  const int first = static_cast<int>(best);
  if (gesdd(m, n, a, values, workspace<T>(static_cast<size_t>(first)), first, iwork.data()) == 0) return true;
  gesvd(m, n, copy.data(), values, &best, kQuery);
  const int second = static_cast<int>(best);
  return gesvd(m, n, copy.data(), values, workspace<T>(static_cast<size_t>(second)), second) == 0;
}

}  // namespace

bool have_lapack() { return true; }

bool singular_values(float* a, int64_t m, int64_t n, float* values) { return svd(a, m, n, values); }
bool singular_values(double* a, int64_t m, int64_t n, double* values) { return svd(a, m, n, values); }

bool symmetric_eigenvalues(double* g, int64_t size, double* values) {
  if (size == 0) return true;
  const int n = static_cast<int>(size);
  int info = 0, integers = 0;
  double best = 0;
  dsyevd_("N", "L", &n, g, &n, values, &best, &kQuery, &integers, &kQuery, &info, 1, 1);
  const int lwork = static_cast<int>(best), liwork = integers;
  thread_local std::vector<int> iwork;
  iwork.resize(static_cast<size_t>(std::max(1, liwork)));
  dsyevd_("N", "L", &n, g, &n, values, workspace<double>(static_cast<size_t>(lwork)), &lwork, iwork.data(),
          &liwork, &info, 1, 1);
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
  dgeqrf_(&m, &n, a, &m, tau.data(), workspace<double>(static_cast<size_t>(lwork)), &lwork, &info);
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
  dhseqr_("E", "N", &n, &kOne, &n, h, &n, real, imaginary, nullptr, &kOne,
          workspace<double>(static_cast<size_t>(lwork)), &lwork, &info, 1, 1);
  return info == 0;
}

void multiply_nt(const double* a, const double* b, int64_t rows, int64_t cols, int64_t inner, double* c) {
  const int m = static_cast<int>(rows), n = static_cast<int>(cols), k = static_cast<int>(inner);
  const double one = 1, zero = 0;
  dgemm_("T", "N", &n, &m, &k, &one, b, &k, a, &k, &zero, c, &n, 1, 1);
}

}  // namespace rankscope::lapack
