// The loss of the studies, as an operator with a gradient: a fused kernel where there is one, a plain
// composition of tensor operations otherwise.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// weight * sum of (answer - target)^2: one number, or with `stacked`, where the first dimension counts
/// trials, one a trial. The target gets no gradient.
at::Tensor squared_error_sum(const at::Tensor& answers, const at::Tensor& target, double weight,
                             bool stacked);

/// The plain composition of the same.
at::Tensor squared_error_sum_reference(const at::Tensor& answers, const at::Tensor& target, double weight,
                                       bool stacked);

}  // namespace rankscope
