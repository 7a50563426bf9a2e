// The best weights of given rank-1 hard heads, a = C^-1 b, and the error 1 - b'a they reach (kernel.h).
#pragma once

#include <cstdint>
#include <vector>

#include "theory/features.h"

namespace rankscope {

struct HeadWeights {
  std::vector<double> weights;
  double error = 1;                // 1 - b'a
  double residual = 0;             // |C a - b| / |b|
  int64_t iterations = 0;          // of conjugate gradients
  double smallest_eigenvalue = 0;  // of C, as the iteration has seen it: an upper estimate
  bool converged = true;
};

struct IterationOptions {
  double tolerance = 1e-7;  // of the residual
  int64_t most_iterations = 2000;
  int threads = 0;                  // 0 is all of the machine's
  size_t memory = size_t{1} << 30;  // for the matrix; beyond it, it is computed anew in every iteration
};

/// Conjugate gradients. Stops early, not converged, at a direction of negative curvature: C is not positive
/// definite then, and the error is that of the weights so far.
HeadWeights weights_by_iteration(const Heads& heads, const IterationOptions& options = {});

}  // namespace rankscope
