// Networks that read points, as most studies train them: the two shapes that the fused routes know. A spec
// that differs from them in anything is somebody else's.
#pragma once

#include <string>

#include "spec/model.h"

namespace rankscope {

/// The name of the stream that the one-layer network's queries look at.
inline const std::string kPoints = "points";

/// An encoder over points of width `points`: `layers` blocks alike, torch's initialisation, and as answer the
/// first channels of the stream.
ModelSpec points_encoder(int64_t points, const BlockSpec& block, int64_t layers, int64_t answer_width);

/// One attention layer whose queries are tokens of their own: sum_h VO_h X softmax(...), no skip, norm or
/// MLP; every head's values are the points themselves. `positions` > 0: so many learned places of width
/// `position_width` stand behind the points, and queries have a bias.
ModelSpec points_layer(int64_t points, int64_t heads, int64_t rank, double score_scale, int64_t answer_width,
                       int64_t positions = 0, int64_t position_width = 0, bool bias = true);

/// Whether the network has separate queries.
inline bool asks_separately(const ModelSpec& spec) { return !spec.sources.empty(); }

/// The epsilon of a norm as the fused kernels have it.
NormSpec fused_norm(NormKind kind);

}  // namespace rankscope
