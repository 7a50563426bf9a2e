// Eigenvalues of symmetric matrices of doubles that fit a cache, in two steps: to tridiagonal form one by
// one, in a pass over the matrix a step, and from there many at once, one per SIMD lane.
#pragma once

#include <cstdint>

namespace rankscope {

/// True where the reduction is no slower than LAPACK's blocks, which need a cache less but the fastest
/// products.
bool tridiagonal_fits(int64_t n);

/// The upper triangle (row-major) of g [n, n] is read. d [n]: the diagonal; e [n]: squares of what lies
/// beside it, e[i] between i and i + 1, the last one 0. The matrix has d's eigenvalues up to a few roundings
/// of its norm.
void tridiagonalise(int64_t n, const double* g, double* d, double* e);

/// Matrices that one call of tridiagonal_eigenvalues takes.
constexpr int64_t kTridiagonalGroup = 16;
/// d and e [count, n] as above, of count <= kTridiagonalGroup matrices; values [count, n] in no order. Zeros
/// behind a shorter matrix stay where they are and change nothing. Bit i of the answer: those of matrix i did
/// not converge.
unsigned tridiagonal_eigenvalues(int64_t count, int64_t n, const double* d, const double* e, double* values);

}  // namespace rankscope
