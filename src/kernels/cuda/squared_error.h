// The loss of the studies and its gradient, for a stack of trials on CUDA.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

/// Answers [trials, rows, width], of which the first target_width columns are the answer; targets [trials,
/// rows, target_width].
struct SquaredError {
  int64_t trials = 1, rows = 1, width = 1, target_width = 1;
  float weight = 1;
};

/// Floats of scratch memory a call needs.
int64_t squared_error_workspace(const SquaredError& e);

/// loss[t] = weight * sum over rows of ||answer - target||^2, summed in a fixed order; gradient (of the
/// answers, as wide as they are) = 2 weight (answer - target), zero where there is no target. gradient may be
/// null.
void squared_error(const SquaredError& e, const float* answers, const float* targets, float* loss,
                   float* gradient, float* workspace, void* stream);

}  // namespace rankscope::cuda
