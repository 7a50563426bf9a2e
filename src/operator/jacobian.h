// How far the frozen operator may be trusted away from its input: its distance from the true Jacobian.
#pragma once

#include <cstdint>

#include "model/batch.h"
#include "operator/frozen.h"
#include "tensors/weights.h"

namespace rankscope {

struct JacobianDistance {
  double relative;                          // ||J - T||_F / ||J||_F, from random directions
  double norm_ratio;                        // ||T||_F / ||J||_F
  double relative_error, norm_ratio_error;  // by leaving out each direction in turn; NaN for one
  int64_t probes;
};

/// J of the trunk (input to output) by central differences, two forward passes a probe; float64 only. The
/// relative error of a difference is about 1e-9.
JacobianDistance jacobian_distance(const FrozenNetwork& frozen, const ModelSpec& spec, WeightSource& source,
                                   const Batch& batch, int64_t probes, uint64_t seed);

}  // namespace rankscope
