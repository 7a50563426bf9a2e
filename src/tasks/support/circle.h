// Two points that walk on a circle: each sequence has both, the targets are where they stand next.
#pragma once

#include <cstdint>

#include "tasks/token_task.h"

namespace rankscope {

constexpr double kCircleRadius = 0.3;

/// One sequence for every place of the first point on half the circle, which has `points` places in all; the
/// second is opposite. As published it is one place short of that, and the last sequence is left out.
TokenSet circle_walk(int64_t points, bool as_published);

/// How far a point walks in one step.
double circle_step(int64_t points);

}  // namespace rankscope
