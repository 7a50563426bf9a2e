// The neighbour tasks' data: normals become points of the unit sphere, and each asker gets its nearest or
// farthest point. Nothing here has a gradient.
#pragma once

#include "base/tensor_fwd.h"  // whoever handles Neighbours includes ATen

namespace rankscope {

struct Neighbours {
  at::Tensor points, asks, target;  // asks: undefined where every point asks
};

/// From normals points [.., sequences, count, d] and asks [.., sequences, queries, d], or undefined: rows of
/// unit length, and for each asker the point of its sequence whose inner product with it, times sign (1 or
/// -1), is the largest. The inner products are float32's, whatever precision products may have: targets are
/// data.
Neighbours unit_neighbours(const at::Tensor& points, const at::Tensor& asks, double sign);

/// The plain composition of the same.
Neighbours unit_neighbours_reference(const at::Tensor& points, const at::Tensor& asks, double sign);

/// The point with the largest score for each query: points [.., N, d], scores [.., Q, N] -> [.., Q, d].
at::Tensor pick(const at::Tensor& points, const at::Tensor& scores);

}  // namespace rankscope
