// Dense decompositions on raw pointers, values only, each call single-threaded inside a parallel region.
// Matrices are row-major and contiguous; Fortran reads them transposed, which changes no singular value.
// Workspaces belong to the thread and are kept. Where no LAPACK is linked lapack_absent.cpp stands in and
// have_lapack() says so.
#pragma once

#include <cstdint>

namespace rankscope::lapack {

bool have_lapack();

/// Singular values of a [m, n], descending, into values [min(m, n)]. Overwrites a. False: did not converge.
bool singular_values(double* a, int64_t m, int64_t n, double* values);

/// Eigenvalues of the symmetric g [n, n], ascending; only the upper triangle (row-major) is read, and g is
/// overwritten.
bool symmetric_eigenvalues(double* g, int64_t n, double* values);

/// g = a a^T [m, m] where m <= n, otherwise a^T a [n, n]; only the upper triangle (row-major) is written.
void gram(const double* a, int64_t m, int64_t n, double* g);

/// g = a^T a [n, n], whichever side is longer; only the upper triangle is written.
void gram_of_columns(const double* a, int64_t m, int64_t n, double* g);

/// r [min(m, n), m], upper triangular (or trapezoidal), with r^T r = a a^T: the R of a thin QR of a^T, for a
/// [m, n]. Overwrites a.
void triangle(double* a, int64_t m, int64_t n, double* r);

/// Eigenvalues of the upper Hessenberg h [n, n] (row-major). Overwrites h.
bool hessenberg_eigenvalues(double* h, int64_t n, double* real, double* imaginary);

/// c [m, n] = a [m, k] b [n, k]^T.
void multiply_nt(const double* a, const double* b, int64_t m, int64_t n, int64_t k, double* c);

}  // namespace rankscope::lapack
