// Norms that divide by what another variant's tokens gave there, not by their own.
#pragma once

#include "base/tensor_fwd.h"
#include "model/block.h"

namespace rankscope {

/// The block's weights with the scales of its norms at x beside them: apply_norm then takes these.
Weights with_held_norms(const at::Tensor& x, const BlockPlan& plan, const Weights& weights,
                        const Batch& batch);

}  // namespace rankscope
