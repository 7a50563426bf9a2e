// The target of the exponential separation, reconstructed: an alternating sum of 2 d^2 + 1 biased
// nearest-neighbour functions of two points. With t = <x_1 - x_2, y>, y Gaussian, it is (x_1 + x_2)/2 + f(t)
// (x_1 - x_2)/2 up to sign, where f is a square wave of period 2 delta over |t| < d^2 delta.
#include <cmath>

#include "base/error.h"
#include "tasks/support/points.h"

namespace rankscope {
namespace {

void check_square_wave(const TaskSpec& spec) {
  check_points(spec);
  if (token_count(spec) != 2)
    throw usage_error(fmt::format("the square wave is a function of 2 points, not {}", token_count(spec)))
        .hint("n=2");
}

// f(t) = sum over i in [-m, m] of (-1)^i sgn(t - i delta), m = d^2: with j of the 2m + 1 jumps below t it is
// (-1)^m times (1 for odd j, -1 for even j).
at::Tensor wave(const at::Tensor& t, double m, double delta) {
  const at::Tensor jumps = (t / delta).ceil().add_(m).clamp_(0, 2 * m + 1);
  const double sign = std::fmod(m, 2) == 0 ? 1.0 : -1.0;
  return jumps.remainder(2.0).mul_(2.0).sub_(1.0).mul_(sign);
}

TaskBatch sample_square_wave(const TaskSpec& spec, const Draw& draw) {
  TaskBatch batch;
  batch.tokens = draw_points(spec, draw);
  batch.queries = gaussian_queries(spec, draw);
  const at::Tensor a = batch.tokens.narrow(-2, 0, 1), b = batch.tokens.narrow(-2, 1, 1);
  const at::Tensor t = (batch.queries * (a - b)).sum(-1, true);  // [.., queries, 1]
  const double m = static_cast<double>(spec.d * spec.d);
  // The wave covers four standard deviations of t (variance 2 for orthonormal points).
  const at::Tensor f = wave(t, m, 4 * std::sqrt(2.0) / m);
  const double ends = std::fmod(m, 2) == 0 ? 1.0 : -1.0;  // the alternating sum of 2m + 1 constants
  batch.target = (a + b) * (0.5 * ends) + f * (a - b) * 0.5;
  return batch;
}

}  // namespace

extern const Task task_square_wave{
    .name = "square-wave",
    .summary = "an alternating sum of 2 d^2 + 1 biased nearest neighbours of 2 points",
    .queries = "separate",
    .token_width = point_width,
    .answer_width = point_width,
    .answers = asked,
    .check = check_square_wave,
    .sample = sample_square_wave};

}  // namespace rankscope
