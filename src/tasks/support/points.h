// What the tasks on points share: the laws of the points and picking one by its score.
#pragma once

#include "ops/neighbours.h"
#include "tasks/task.h"

namespace rankscope {

/// [.., sequences, tokens, d] by the spec's law. iid: uniform on the sphere. ortho: orthonormal, Haar
/// (Gram-Schmidt fixes the signs). doubled: iid points and their negatives.
at::Tensor draw_points(const TaskSpec& spec, const Draw& draw);

/// [.., sequences, queries, d] uniform on the sphere, independent of the points.
at::Tensor draw_queries(const TaskSpec& spec, const Draw& draw);

/// The same without normalising.
at::Tensor gaussian_queries(const TaskSpec& spec, const Draw& draw);

/// Standard normals [.., sequences, count, d].
at::Tensor gaussian(const Draw& draw, uint32_t stream, int64_t count, int64_t d);

/// The point whose inner product with the query, times `sign`, is the largest; every point asks where there
/// are no separate queries.
TaskBatch neighbours(const TaskSpec& spec, const Draw& draw, double sign);

int64_t point_width(const TaskSpec& spec);  // d
int64_t asked(const TaskSpec& spec);        // queries, or points where every point asks

/// Refuses more orthonormal points than dimensions, and laws that do not exist.
void check_points(const TaskSpec& spec);

}  // namespace rankscope
