// A batched product with a bias first writes the bias over its whole output and then reads it back, and the
// bias's gradient reads the output's gradient once more: where the output is wide that is half the time. On
// CUDA the bias rides along as a column of W, beside a column of ones of x, and its gradient comes out of the
// product that gives W's.
#include "ops/linear.h"

#include <torch/library.h>

#include "ops/checks.h"
#include "ops/function.h"
#include "ops/fused.h"

namespace rankscope {
namespace {

using at::Tensor;

constexpr int64_t kExtra = 8;  // columns: the fast products want widths of 32 bytes

// [x | p | 0], p one column.
Tensor with_column(const Tensor& x, const Tensor& p) {
  Tensor out = at::zeros({x.size(0), x.size(1), x.size(2) + kExtra}, x.options());
  out.narrow(2, 0, x.size(2)).copy_(x);
  out.select(2, x.size(2)).copy_(p);
  return out;
}

class BiasedProduct : public torch::autograd::Function<BiasedProduct> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& W,
                        const Tensor& b) {
    const Tensor wide = with_ones(x);
    context->save_for_backward({wide, W});
    return at::bmm(wide, with_column(W, b).transpose(1, 2));
  }
  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const Variables saved = context->get_saved_variables();
    const WeightGradients d = weight_gradients(gradients[0], saved[0]);
    return {context->needs_input_grad(0) ? at::bmm(gradients[0], saved[1]) : Tensor(), d.W, d.b};
  }
};

}  // namespace

Tensor with_ones(const Tensor& x) { return with_column(x, at::ones({1, 1}, x.options())); }

WeightGradients weight_gradients(const Tensor& dy, const Tensor& wide) {
  const Tensor both = at::bmm(dy.transpose(1, 2), wide);
  const int64_t width = wide.size(2) - kExtra;
  return {both.narrow(2, 0, width), both.select(2, width)};
}

Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b) {
  if (x.dim() == 2) return b.defined() ? at::addmm(b, x, W.t()) : at::mm(x, W.t());
  if (!b.defined()) return at::bmm(x, W.transpose(1, 2));
  const bool wide_output = x.size(2) < W.size(1);  // else x is the larger one, and stays where it is
  if (x.is_cuda() && fused_for(x) && wide_output) return BiasedProduct::apply(x, W, b);
  return at::baddbmm(b.unsqueeze(1), x, W.transpose(1, 2));
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

Tensor call_linear(const Tensor& x, const Tensor& W, const MaybeTensor& b) {
  require_rows(x, "x");
  require(W.dim() == x.dim(), "W must have the trials of x");
  require(W.size(-2) >= 1 && x.size(-1) >= 1, "a linear map needs at least one column on both sides");
  require_parameter(W, x, {W.size(-2), x.size(-1)}, "W");
  if (b.has_value()) require_parameter(*b, x, {W.size(-2)}, "b");
  return linear(x, W, or_none(b));
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def("linear(Tensor x, Tensor W, Tensor? b) -> Tensor", rankscope::call_linear);
}
