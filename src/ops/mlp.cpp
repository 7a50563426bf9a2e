// On the CPU the hidden layer is made and used up piece by piece: a piece is some rows by some hidden units,
// small enough to stay in the cache between the product that makes it and those that read it. The backward
// pass needs every piece again; they are kept one behind the other, because making them anew would cost a
// seventh product.
#include "ops/mlp.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/bias_relu.h"
#include "ops/fused.h"
#include "ops/gemm.h"
#include "ops/mlp_cuda.h"

namespace rankscope {
namespace {

using at::Tensor;
using Variables = torch::autograd::variable_list;

constexpr int64_t kRows = 256, kUnits = 512;  // of a piece of the hidden layer

// One trial's operands; a null bias is none.
template <class T>
struct Network {
  int64_t rows, in, hidden, out;
  const T *x, *W_in, *b_in, *W_out;
};

// What a piece covers and where it lies among the kept ones.
struct Piece {
  int64_t row, rows, unit, units;
  int64_t at(int64_t hidden) const { return row * hidden + rows * unit; }
};

template <class T, class Each>
void for_each_piece(const Network<T>& n, const Each& each) {
  for (int64_t row = 0; row < n.rows; row += kRows)
    for (int64_t unit = 0; unit < n.hidden; unit += kUnits)
      each(Piece{row, std::min(kRows, n.rows - row), unit, std::min(kUnits, n.hidden - unit)});
}

template <class T>
Tensor one_piece(const Network<T>& n) {
  return at::empty({std::min(kRows, n.rows) * std::min(kUnits, n.hidden)}, at::dtype<T>());
}

// y += relu(x W_in^T + b_in) W_out^T. `kept` [rows * hidden] gets the hidden layer; null: nobody wants it.
template <class T>
void forward(const Network<T>& n, T* y, T* kept) {
  const std::vector<T> no_bias(n.b_in ? 0 : static_cast<size_t>(std::min(kUnits, n.hidden)));
  const Tensor passing = kept ? Tensor() : one_piece(n);
  for_each_piece(n, [&](const Piece& p) {
    T* h = kept ? kept + p.at(n.hidden) : passing.data_ptr<T>();
    gemm(Turn::no, Turn::yes, p.rows, p.units, n.in, T(1), {n.x + p.row * n.in, n.in},
         {n.W_in + p.unit * n.in, n.in}, T(0), {h, p.units});
    bias_relu(p.rows, p.units, n.b_in ? n.b_in + p.unit : no_bias.data(), h, p.units);
    gemm(Turn::no, Turn::yes, p.rows, n.out, p.units, T(1), {h, p.units}, {n.W_out + p.unit, n.hidden}, T(1),
         {y + p.row * n.out, n.out});
  });
}

// Adds to what is not null: dx, dW_in, db_in, dW_out.
template <class T>
struct Gradients {
  T *x, *W_in, *b_in, *W_out;
};

template <class T>
void backward(const Network<T>& n, const T* kept, const T* dy, const Gradients<T>& d) {
  const Tensor slopes = one_piece(n);
  T* dh = slopes.data_ptr<T>();
  for_each_piece(n, [&](const Piece& p) {
    const T *h = kept + p.at(n.hidden), *dy_rows = dy + p.row * n.out, *x_rows = n.x + p.row * n.in;
    gemm(Turn::yes, Turn::no, n.out, p.units, p.rows, T(1), {dy_rows, n.out}, {h, p.units}, T(1),
         {d.W_out + p.unit, n.hidden});
    gemm(Turn::no, Turn::no, p.rows, p.units, n.out, T(1), {dy_rows, n.out}, {n.W_out + p.unit, n.hidden},
         T(0), {dh, p.units});
    bias_relu_backward(p.rows, p.units, h, p.units, dh, p.units, d.b_in ? d.b_in + p.unit : nullptr);
    gemm(Turn::yes, Turn::no, p.units, n.in, p.rows, T(1), {dh, p.units}, {x_rows, n.in}, T(1),
         {d.W_in + p.unit * n.in, n.in});
    if (d.x)
      gemm(Turn::no, Turn::no, p.rows, n.in, p.units, T(1), {dh, p.units}, {n.W_in + p.unit * n.in, n.in},
           T(1), {d.x + p.row * n.in, n.in});
  });
}

// Null for what is not there: autograd of LibTorch 1.13 takes no undefined tensors, so an absent bias is an
// empty one.
template <class T>
T* data(const Tensor& x, int64_t trial) {
  return x.defined() && x.numel() > 0 ? x.data_ptr<T>() + trial * (x.numel() / x.size(0)) : nullptr;
}

template <class T>
Network<T> network(const Variables& in, int64_t trial) {
  const Tensor &x = in[0], &W_in = in[1], &W_out = in[3];
  return {x.size(1),         W_in.size(2),         W_in.size(1),          W_out.size(1),
          data<T>(x, trial), data<T>(W_in, trial), data<T>(in[2], trial), data<T>(W_out, trial)};
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
    for_type_of(x, [&](auto one) {
      using T = decltype(one);
      for (int64_t t = 0; t < trials; ++t)
        rankscope::forward(network<T>(in, t), data<T>(y, t), data<T>(kept, t));
    });
    context->save_for_backward({x, W_in, b_in, W_out, kept});
    context->saved_data["dx"] = x.requires_grad();
    context->saved_data["db_out"] = b_out.numel() > 0;
    return y;
  }

  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    const Variables in = context->get_saved_variables();
    const Tensor dy = gradients[0].contiguous(), &kept = in[4];
    const Tensor dx = context->saved_data["dx"].toBool() ? at::zeros_like(in[0]) : Tensor();
    const Tensor dW_in = at::zeros_like(in[1]), dW_out = at::zeros_like(in[3]);
    const Tensor db_in = in[2].numel() > 0 ? at::zeros_like(in[2]) : Tensor();
    const Tensor db_out = context->saved_data["db_out"].toBool() ? dy.sum(1) : Tensor();
    for_type_of(dy, [&](auto one) {
      using T = decltype(one);
      for (int64_t t = 0; t < dy.size(0); ++t)
        rankscope::backward<T>(network<T>(in, t), data<T>(kept, t), data<T>(dy, t),
                               {data<T>(dx, t), data<T>(dW_in, t), data<T>(db_in, t), data<T>(dW_out, t)});
    });
    return {dx, dW_in, db_in, dW_out, db_out, Tensor()};
  }
};

Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b) {
  if (x.dim() == 2) return b.defined() ? at::addmm(b, x, W.t()) : at::mm(x, W.t());
  return b.defined() ? at::baddbmm(b.unsqueeze(1), x, W.transpose(1, 2)) : at::bmm(x, W.transpose(1, 2));
}

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

}  // namespace rankscope
