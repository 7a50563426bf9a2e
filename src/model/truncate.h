// Cutting a head's rank is a map over one block's weights.
#pragma once

#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// Whether some attention of the block is cut.
bool is_truncated(const BlockSpec& block);

/// Applies truncate_qk and truncate_ov to a block's weights, both as the normalised tokens meet them: the
/// gain of the norm before is folded in. QK: the SVD of W_Q^T W_K; what the queries' biases add keeps a
/// dimension of its own, and with rotary positions W_Q and W_K are cut separately, since the phases stand
/// between them. OV: the SVD of W_O W_V; what biases make heads carry moves into the output bias, exactly,
/// since a pattern's rows sum to one (with learned sinks, whose rows do not, it keeps a dimension of its
/// own). A truncated block has its own keys and values for each query head; `block` is changed to say so.
Weights truncated(const Weights& weights, BlockSpec& block);

}  // namespace rankscope
