// Taking a part out is an edit of the spec; cutting a head's rank, a map over one block's weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/spec.h"
#include "model/weights.h"

namespace rankscope {

/// The names --off knows, without head:L5H3.
const std::vector<std::string>& part_names();

/// The spec without `parts` ("skip+mlp", "head:L5H3"). An unknown part, layer or head is an error with the
/// nearest known names.
///   attention-skip  post: u = N1(attn x)        pre: u = attn(N1 x)
///   mlp-skip        post: y = N2(mlp u)         pre: y = mlp(N2 u)
///   skip            both
///   mlp             the MLP with its skip and its post-norm: y = u
///   norm            the norms of the blocks and the final one; the embedding's stays
///   position        learned positions are not added, rotary and relative terms left out
///   head:L5H3       that head writes zero
ModelSpec without(ModelSpec spec, std::string_view parts);

/// "qk=8" or "ov=16" or "qk=8+ov=16": each head's map cut to that rank.
ModelSpec with_rank(ModelSpec spec, std::string_view ranks);

/// Applies truncate_qk and truncate_ov to a block's weights. QK: the SVD of W_Q^T W_K with the biases as one
/// more column; with rotary positions W_Q and W_K separately, since the phases stand between them. OV: the
/// SVD of W_O W_V; the value bias moves into the output bias, exactly, since a pattern's rows sum to one. A
/// truncated block has its own keys and values for each query head; `block` is changed to say so.
Weights truncated(const Weights& weights, BlockSpec& block);

}  // namespace rankscope
