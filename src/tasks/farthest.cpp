// Farthest neighbour: every point (or query) asks for the point with the smallest inner product.
#include "tasks/support/points.h"

namespace rankscope {

extern const Task task_farthest{
    .name = "farthest",
    .summary = "the point farthest from the query",
    .queries = "either",
    .token_width = point_width,
    .answer_width = point_width,
    .answers = asked,
    .check = check_points,
    .sample = [](const TaskSpec& spec, const Draw& draw) { return neighbours(spec, draw, -1.0); }};

}  // namespace rankscope
