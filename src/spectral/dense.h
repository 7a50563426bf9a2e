// Dense decompositions of row-major doubles, by LAPACK where it is linked and by LibTorch where it is not.
// Safe to call from many threads at once.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace rankscope::dense {

/// Descending, into values [min(m, n)]. Overwrites a. An Error when the iteration does not converge.
void singular_values(double* a, int64_t m, int64_t n, double* values);

/// Ascending; only the upper triangle of g [n, n] is read. Overwrites g. False: did not converge.
bool symmetric_eigenvalues(double* g, int64_t n, double* values);

/// The upper triangle of a a^T [m, m] where m <= n, otherwise of a^T a [n, n].
void gram(const double* a, int64_t m, int64_t n, double* g);

/// The upper triangle of a^T a [n, n] for a [m, n], whichever side is longer.
void gram_of_columns(const double* a, int64_t m, int64_t n, double* g);

/// The R [min(m, n), m] of a thin QR of a^T, for a [m, n]. Overwrites a.
void triangle(double* a, int64_t m, int64_t n, double* r);

/// Eigenvalues of the upper Hessenberg h [n, n]. An Error when the iteration does not converge.
std::vector<std::complex<double>> hessenberg_eigenvalues(std::vector<double> h, int64_t n);

/// c [m, n] = a [m, k] b [n, k]^T.
void multiply_nt(const double* a, const double* b, int64_t m, int64_t n, int64_t k, double* c);

}  // namespace rankscope::dense
