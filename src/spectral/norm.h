// The largest singular value of a linear map that is only applied, never formed.
#pragma once

#include <cstdint>
#include <functional>

namespace rankscope {

struct LinearMap {
  int64_t rows = 0, cols = 0;
  std::function<void(const double* x, double* y)> apply;    // y [rows] = A x
  std::function<void(const double* y, double* x)> adjoint;  // x [cols] = A^T y
};

/// The row-major a [m, n], which must outlive the map; `centered`: (I - J) a, the column means taken off.
LinearMap dense_map(const double* a, int64_t m, int64_t n, bool centered);

struct NormEstimate {
  double value;
  double residual;  // a singular value lies within this of value, absolutely
  int steps;
};

/// Golub-Kahan-Lanczos with full reorthogonalisation from a random start, until the residual is below
/// tolerance * value (or the subspace is the whole space). Deterministic in `seed`.
NormEstimate spectral_norm(const LinearMap& map, double tolerance = 1e-7, uint64_t seed = 0);

}  // namespace rankscope
