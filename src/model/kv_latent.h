// Keys and values through one latent, as a map over one block's weights.
#pragma once

#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// Keys and values of each KV head through one latent of width `rank`: the stacked map [W_K; W_V] of the
/// head, as the normalised tokens meet it, cut to that rank. Shapes stay, and so does what biases add. An
/// error where keys and values are not one map each of the tokens.
Weights with_kv_latent(const Weights& weights, const BlockSpec& block, int64_t rank);

}  // namespace rankscope
