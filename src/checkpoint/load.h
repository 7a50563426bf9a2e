// Weights from a checkpoint, one part at a time, straight from the mapped file: float32 tensors are views of
// it, everything else is converted, and the pages of a part go back when the next one is asked for.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "tensors/weights.h"

namespace rankscope {

/// `checkpoint` must outlive the source and the weights it hands out. NaN or Inf in a tensor is an error.
std::unique_ptr<WeightSource> checkpoint_source(const Checkpoint& checkpoint, const std::string& dtype,
                                                const std::string& device);

/// A stored tensor as it is, for activations saved beside a model; copied out of the file.
at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name);

}  // namespace rankscope
