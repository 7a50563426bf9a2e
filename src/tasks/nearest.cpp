// Nearest neighbour: each query asks for the point with the largest inner product. Without separate queries
// the answer is the point itself.
#include "tasks/support/points.h"

namespace rankscope {
namespace {

int64_t width(const TaskSpec& spec) { return spec.d; }
int64_t answers(const TaskSpec& spec) { return spec.queries > 0 ? spec.queries : token_count(spec); }

TaskBatch sample(const TaskSpec& spec, const Draw& draw) {
  TaskBatch batch;
  batch.tokens = draw_points(spec, draw);
  if (spec.queries > 0) batch.queries = draw_queries(spec, draw);
  const at::Tensor& ask = spec.queries > 0 ? batch.queries : batch.tokens;
  batch.target = pick(batch.tokens, at::matmul(ask, batch.tokens.transpose(-1, -2)));
  return batch;
}

}  // namespace

extern const Task task_nearest{.name = "nearest",
                               .summary = "the point nearest to the query",
                               .queries = "either",
                               .token_width = width,
                               .answer_width = width,
                               .answers = answers,
                               .check = check_points,
                               .sample = sample};

}  // namespace rankscope
