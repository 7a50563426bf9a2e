// The eigenvalue of largest modulus of a map that is only applied.
#pragma once

#include <cstdint>

#include "spectral/norm.h"

namespace rankscope {

struct RadiusEstimate {
  double value;     // modulus of the largest Ritz value
  double residual;  // ||A v - theta v|| of its unit Ritz vector; 0 when the subspace was the whole space
  int steps;
};

/// Arnoldi steps with full reorthogonalisation from a random start, until the residual is below tolerance or
/// `most` steps are done. `map` must be square; only apply is used. Deterministic in `seed`.
RadiusEstimate spectral_radius(const LinearMap& map, double tolerance = 1e-6, int most = 128,
                               uint64_t seed = 0);

}  // namespace rankscope
