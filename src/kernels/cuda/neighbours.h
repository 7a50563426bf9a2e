// The neighbour tasks' data, on CUDA: normals become points of the unit sphere, and each asks for its nearest
// or farthest point.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

enum class Neighbour { nearest, farthest };

/// points [sequences, count, d] and asks [sequences, queries, d] come as normals and leave with unit rows;
/// target [sequences, queries, d] is the point of the same sequence with the largest (nearest) or smallest
/// (farthest) inner product with the asker, the first of equals. asks may be null: then every point asks, and
/// queries is not read. `sequences` counts those of all trials.
void neighbour_targets(Neighbour which, int64_t sequences, int64_t count, int64_t queries, int64_t d,
                       float* points, float* asks, float* target, void* stream);

}  // namespace rankscope::cuda
