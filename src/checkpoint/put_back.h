// The way back from a parameter to what is stored of it. Included by files that know torch.
#pragma once

#include "base/tensor_fwd.h"
#include "checkpoint/checkpoint.h"

namespace rankscope {

/// Writes a parameter's numbers into the tensor of its place, in the stored layout: the inverse of `oriented`
/// and `finished` (checkpoint/stored.h). `stored` is the whole tensor of the file, in any type.
void put_back(at::Tensor& stored, const Checkpoint::Place& place, const Parameter& p,
              const at::Tensor& value);

}  // namespace rankscope
