#include "ops/squared_error.h"

#include <torch/library.h>

#include "kernels/cpu/squared_error.h"
#include "kernels/cuda/squared_error.h"
#include "ops/checks.h"
#include "ops/function.h"
#include "ops/fused.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;

// Rows of one width make no difference to a sum; the kernels like them short.
constexpr int64_t kRowWidth = 64;

// The gradient comes with the loss: forward keeps it, backward scales it.
class SquaredErrorFunction : public torch::autograd::Function<SquaredErrorFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& answers_,
                        const Tensor& target_, double weight, bool stacked) {
    const Tensor answers = answers_.contiguous(), target = target_.contiguous();
    const int64_t trials = stacked ? answers.size(0) : 1;
    const int64_t count = trials == 0 ? 0 : answers.numel() / trials;
    const int64_t width = count % kRowWidth == 0 ? kRowWidth : 1, rows = count / width;
    const Tensor gradient = at::empty(answers.sizes(), answers.options());
    const Tensor loss = at::zeros({trials}, answers.options());
    if (answers.is_cuda()) {
      cuda::SquaredError e;
      e.trials = trials;
      e.rows = rows;
      e.width = e.target_width = width;
      e.weight = static_cast<float>(weight);
      const Tensor work = at::empty({cuda::squared_error_workspace(e)}, answers.options());
      cuda::squared_error(e, answers.data_ptr<float>(), target.data_ptr<float>(), loss.data_ptr<float>(),
                          gradient.data_ptr<float>(), work.data_ptr<float>(), current_stream(answers));
    } else {
      const auto run = [&]<class T>(T) {
        for (int64_t t = 0; t < trials; ++t)
          loss.data_ptr<T>()[t] = static_cast<T>(squared_error<T>(
              rows, width, static_cast<T>(weight), answers.data_ptr<T>() + t * count, width,
              target.data_ptr<T>() + t * count, width, gradient.data_ptr<T>() + t * count, width));
      };
      answers.scalar_type() == at::kDouble ? run(double{}) : run(float{});
    }
    context->save_for_backward({gradient});
    context->saved_data["stacked"] = stacked;
    return stacked ? loss : loss.squeeze(0);
  }

  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const Tensor gradient = context->get_saved_variables()[0];
    Tensor factor = gradients[0];
    if (context->saved_data["stacked"].toBool())
      while (factor.dim() < gradient.dim()) factor = factor.unsqueeze(-1);
    return {gradient * factor, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor squared_error_sum_reference(const Tensor& answers, const Tensor& target, double weight, bool stacked) {
  const Tensor squares = (answers - target).square();
  if (!stacked) return squares.sum() * weight;
  return (squares.dim() > 1 ? squares.flatten(1).sum(1) : squares) * weight;
}

Tensor squared_error_sum(const Tensor& answers, const Tensor& target, double weight, bool stacked) {
  if (!fused_for(answers)) return squared_error_sum_reference(answers, target, weight, stacked);
  return SquaredErrorFunction::apply(answers, target, weight, stacked);
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

Tensor call_squared_error(const Tensor& answers, const Tensor& target, double weight, bool stacked) {
  require_floats(answers, "answers");
  require_alike(target, answers, "target");
  require(target.sizes() == answers.sizes(), "target must have the shape of answers");
  require(!stacked || answers.dim() >= 1, "stacked answers need a dimension of trials: [trials, ...]");
  return squared_error_sum(answers, target, weight, stacked);
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def("squared_error(Tensor answers, Tensor target, float weight, bool stacked=False) -> Tensor",
        rankscope::call_squared_error);
}
