// In-context linear regression (Garg et al. 2022): n - 1 pairs (x_i, <w, x_i>) and a question x_n with no
// answer, a new w for every sequence. The answer is read off the last token; errors are in units of the
// answer's variance.
#include <cmath>

#include "base/error.h"
#include "tasks/support/points.h"

namespace rankscope {
namespace {

int64_t regression_width(const TaskSpec& spec) { return spec.d + 1; }
int64_t one_number(const TaskSpec&) { return 1; }

void check_regression(const TaskSpec& spec) {
  if (spec.n < 2) throw usage_error("regression needs a pair and a question: n of at least 2");
}

TaskBatch sample_regression(const TaskSpec& spec, const Draw& draw) {
  const at::Tensor x = gaussian(draw, 0, spec.n, spec.d);
  const at::Tensor w = gaussian(draw, 1, 1, spec.d) / std::sqrt(static_cast<double>(spec.d));
  at::Tensor y = (x * w).sum(-1, true);
  TaskBatch batch;
  batch.target = y.narrow(-2, spec.n - 1, 1).clone();
  y.narrow(-2, spec.n - 1, 1).zero_();
  batch.tokens = at::cat({x, y}, -1);
  return batch;
}

}  // namespace

extern const Task task_regression{.name = "regression",
                                  .summary = "in-context linear regression: pairs, then a question",
                                  .queries = "self",
                                  .token_width = regression_width,
                                  .answer_width = one_number,
                                  .answers = one_number,
                                  .last_token = true,
                                  .check = check_regression,
                                  .sample = sample_regression};

}  // namespace rankscope
