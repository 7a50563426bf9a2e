#include "ops/mlp.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "ops/checks.h"
#include "ops/function.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "ops/mlp_cuda.h"
#include "ops/mlp_rows.h"

namespace rankscope {
namespace {

using at::Tensor;

// Null for what is not there: autograd of LibTorch 1.13 takes no undefined tensors, so an absent bias is an
// empty one.
template <class T>
T* data(const Tensor& x, int64_t trial) {
  return x.defined() && x.numel() > 0 ? x.data_ptr<T>() + trial * (x.numel() / x.size(0)) : nullptr;
}

template <class T>
MlpRows<T> rows_of(const Variables& in, int64_t trial) {
  const Tensor &x = in[0], &W_in = in[1], &W_out = in[3];
  return {x.size(1),         W_in.size(2),         W_in.size(1),          W_out.size(1),
          data<T>(x, trial), data<T>(W_in, trial), data<T>(in[2], trial), data<T>(W_out, trial)};
}

Tensor workspace(const Tensor& x, const Tensor& W_in) {
  return at::empty({mlp_workspace(x.size(1), W_in.size(1))}, x.options());
}

template <class Work>
void for_type_of(const Tensor& x, const Work& work) {
  x.scalar_type() == at::kDouble ? work(double{}) : work(float{});
}

// Operands here are dense and have a leading [trials]: mlp() sees to it.
class CpuMlp : public torch::autograd::Function<CpuMlp> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& W_in,
                        const Tensor& b_in, const Tensor& W_out, const Tensor& b_out, bool differentiate) {
    const Variables in{x, W_in, b_in, W_out};
    const int64_t trials = x.size(0), rows = x.size(1), hidden = W_in.size(1), out = W_out.size(1);
    Tensor y = at::zeros({trials, rows, out}, x.options());
    if (b_out.numel() > 0) y += b_out.unsqueeze(1);
    const Tensor kept = differentiate ? at::empty({trials, rows * hidden}, x.options()) : Tensor();
    const Tensor work = workspace(x, W_in);
    for_type_of(x, [&](auto one) {
      using T = decltype(one);
      for (int64_t t = 0; t < trials; ++t)
        mlp_forward(rows_of<T>(in, t), data<T>(y, t), data<T>(kept, t), work.data_ptr<T>());
    });
    context->save_for_backward({x, W_in, b_in, W_out, kept});
    context->saved_data["dx"] = x.requires_grad();
    context->saved_data["db_out"] = b_out.numel() > 0;
    return y;
  }

  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const Variables in = context->get_saved_variables();
    const Tensor dy = gradients[0].contiguous(), &kept = in[4];
    const Tensor dx = context->saved_data["dx"].toBool() ? at::zeros_like(in[0]) : Tensor();
    const Tensor dW_in = at::zeros_like(in[1]), dW_out = at::zeros_like(in[3]);
    const Tensor db_in = in[2].numel() > 0 ? at::zeros_like(in[2]) : Tensor();
    const Tensor db_out = context->saved_data["db_out"].toBool() ? dy.sum(1) : Tensor();
    const Tensor work = workspace(in[0], in[1]);
    for_type_of(dy, [&](auto one) {
      using T = decltype(one);
      for (int64_t t = 0; t < dy.size(0); ++t)
        mlp_backward(rows_of<T>(in, t), data<T>(kept, t), data<T>(dy, t),
                     {data<T>(dx, t), data<T>(dW_in, t), data<T>(db_in, t), data<T>(dW_out, t)},
                     work.data_ptr<T>());
    });
    return {dx, dW_in, db_in, dW_out, db_out, Tensor()};
  }
};

Tensor mlp_cpu(const Tensor& x, const Tensor& W_in, const Tensor& b_in, const Tensor& W_out,
               const Tensor& b_out) {
  const auto dense = [&](const Tensor& p) {
    if (!p.defined()) return at::empty({0}, x.options());
    return x.dim() == 2 ? p.unsqueeze(0).contiguous() : p.contiguous();
  };
  bool differentiate = false;
  for (const Tensor* p : {&x, &W_in, &b_in, &W_out, &b_out})
    differentiate |= at::GradMode::is_enabled() && p->defined() && p->requires_grad();
  const Tensor y =
      CpuMlp::apply(dense(x), dense(W_in), dense(b_in), dense(W_out), dense(b_out), differentiate);
  return x.dim() == 2 ? y.squeeze(0) : y;
}

}  // namespace

Tensor mlp_reference(const Tensor& x, const Tensor& W_in, const Tensor& b_in, const Tensor& W_out,
                     const Tensor& b_out) {
  return linear(linear(x, W_in, b_in).relu_(), W_out, b_out);
}

Tensor mlp(const Tensor& x, const Tensor& W_in, const Tensor& b_in, const Tensor& W_out,
           const Tensor& b_out) {
  if (!fused_for(x) || (x.is_cuda() && !mlp_cuda_takes(x, W_in, W_out)))
    return mlp_reference(x, W_in, b_in, W_out, b_out);
  return x.is_cuda() ? mlp_cuda(x, W_in, b_in, W_out, b_out) : mlp_cpu(x, W_in, b_in, W_out, b_out);
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

Tensor call_mlp(const Tensor& x, const Tensor& W_in, const MaybeTensor& b_in, const Tensor& W_out,
                const MaybeTensor& b_out) {
  require_rows(x, "x");
  require(W_in.dim() == x.dim() && W_out.dim() == x.dim(), "W_in and W_out must have the trials of x");
  const int64_t hidden = W_in.size(-2), out = W_out.size(-2);
  require(hidden >= 1 && out >= 1 && x.size(-1) >= 1, "an MLP needs at least one column everywhere");
  require_parameter(W_in, x, {hidden, x.size(-1)}, "W_in");
  require_parameter(W_out, x, {out, hidden}, "W_out");
  if (b_in.has_value()) require_parameter(*b_in, x, {hidden}, "b_in");
  if (b_out.has_value()) require_parameter(*b_out, x, {out}, "b_out");
  return mlp(x, W_in, or_none(b_in), W_out, or_none(b_out));
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def("mlp(Tensor x, Tensor W_in, Tensor? b_in, Tensor W_out, Tensor? b_out) -> Tensor",
        rankscope::call_mlp);
}
