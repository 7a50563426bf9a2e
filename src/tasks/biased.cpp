// Biased nearest neighbour: the point with the largest <x_i, y> + b_i, y Gaussian. The bias belongs to the
// place of a point, b_0 = 1 and none elsewhere, so a model needs to know places to solve it.
#include "tasks/support/points.h"

namespace rankscope {
namespace {

TaskBatch sample_biased(const TaskSpec& spec, const Draw& draw) {
  TaskBatch batch;
  batch.tokens = draw_points(spec, draw);
  batch.queries = gaussian_queries(spec, draw);
  at::Tensor scores = at::matmul(batch.queries, batch.tokens.transpose(-1, -2));
  scores.select(-1, 0).add_(1.0);
  batch.target = pick(batch.tokens, scores);
  return batch;
}

}  // namespace

extern const Task task_biased{
    .name = "biased",
    .summary = "the nearest point, the first one favoured by a bias; Gaussian queries",
    .queries = "separate",
    .token_width = point_width,
    .answer_width = point_width,
    .answers = asked,
    .check = check_points,
    .sample = sample_biased};

}  // namespace rankscope
