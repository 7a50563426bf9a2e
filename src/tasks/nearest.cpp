// Nearest neighbour: each query asks for the point with the largest inner product. Without separate queries
// the answer is the point itself.
#include "tasks/support/points.h"

namespace rankscope {

extern const Task task_nearest{
    .name = "nearest",
    .summary = "the point nearest to the query",
    .queries = "either",
    .token_width = point_width,
    .answer_width = point_width,
    .answers = asked,
    .check = check_points,
    .sample = [](const TaskSpec& spec, const Draw& draw) { return neighbours(spec, draw, 1.0); }};

}  // namespace rankscope
