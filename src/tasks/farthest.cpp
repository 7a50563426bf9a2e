// Farthest neighbour: every point (or query) asks for the point with the smallest inner product.
#include "base/error.h"
#include "tasks/support/points.h"

namespace rankscope {
namespace {

// Where points ask among themselves there has to be one that is farther than the others.
void check_farthest(const TaskSpec& spec) {
  check_points(spec);
  if (spec.queries > 0) return;
  if (token_count(spec) < 2) throw usage_error("one point has no farthest other").hint("n=2 or more");
  if (spec.data == "ortho" && spec.n > 2)
    throw usage_error("orthonormal points are equally far from each other: none is the farthest")
        .hint("data=iid, or a query of its own: model=layer queries=1");
}

}  // namespace

extern const Task task_farthest{
    .name = "farthest",
    .summary = "the point farthest from the query",
    .queries = "either",
    .token_width = point_width,
    .answer_width = point_width,
    .answers = asked,
    .check = check_farthest,
    .sample = [](const TaskSpec& spec, const Draw& draw) { return neighbours(spec, draw, -1.0); }};

}  // namespace rankscope
