// What a pass looks up of a batch again and again, once on its device: nothing in a step uploads from the
// host, so that a training step can be captured as a graph.
#pragma once

#include "base/tensor_fwd.h"
#include "model/batch.h"

namespace rankscope {

struct BatchTensors {
  at::Tensor positions, types;  // [N] int64; types undefined where the samples came without
};

/// Those of the batch on the device of `like`; not from two threads at once.
const BatchTensors& tensors_of(const Batch& batch, const at::Tensor& like);

}  // namespace rankscope
