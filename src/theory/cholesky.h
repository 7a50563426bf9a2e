// Cholesky's factorisation of a symmetric positive definite matrix in double precision, for the rooms without
// LAPACK.
#pragma once

#include <cstdint>

namespace rankscope {

/// a [n, n], row-major: its lower half becomes L with L L^T = a; the upper half is left as it is. False where
/// a is not positive definite.
bool cholesky(double* a, int64_t n);

/// x [n] = (L L^T)^-1 x.
void cholesky_solve(const double* l, int64_t n, double* x);

}  // namespace rankscope
