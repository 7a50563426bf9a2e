// Nearest neighbour as one sequence: n - 1 points and then a query, marked by one more channel. The answer,
// read off the last token, is the point with the largest inner product. A state that runs forward can be
// asked this as well as attention without a mask.
#include <ATen/ATen.h>

#include "base/error.h"
#include "tasks/support/points.h"

namespace rankscope {
namespace {

int64_t lookup_width(const TaskSpec& spec) { return spec.d + 1; }
int64_t one_answer(const TaskSpec&) { return 1; }

void check_lookup(const TaskSpec& spec) {
  if (spec.n < 2) throw usage_error("a lookup needs a point and a query: n of at least 2");
  if (spec.data != "iid") throw usage_error("a lookup draws its points by one law").hint("data=iid");
}

TaskBatch sample_lookup(const TaskSpec& spec, const Draw& draw) {
  TaskSpec apart = spec;
  apart.n = spec.n - 1;
  apart.queries = 1;
  const TaskBatch drawn = neighbours(apart, draw, 1.0);
  const at::Tensor tokens = at::cat({drawn.tokens, drawn.queries}, -2);
  at::Tensor mark = at::zeros_like(tokens.narrow(-1, 0, 1));
  mark.narrow(-2, spec.n - 1, 1).fill_(1);
  TaskBatch batch;
  batch.tokens = at::cat({tokens, mark}, -1);
  batch.target = drawn.target;
  return batch;
}

}  // namespace

extern const Task task_lookup{.name = "lookup",
                              .summary = "points, then a query: the point nearest to it",
                              .queries = "self",
                              .token_width = lookup_width,
                              .answer_width = point_width,
                              .answers = one_answer,
                              .last_token = true,
                              .check = check_lookup,
                              .sample = sample_lookup};

}  // namespace rankscope
