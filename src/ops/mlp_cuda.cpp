#include "ops/mlp_cuda.h"

#include "kernels/cuda/mlp.h"
#include "ops/function.h"
#include "ops/fused.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;

const float* data(const Tensor& x) { return x.numel() > 0 ? x.data_ptr<float>() : nullptr; }

cuda::Mlp describe(const Tensor& x, const Tensor& W_in) { return {x.size(0), x.size(1), W_in.size(1)}; }

uint32_t* words(const Tensor& signs) { return reinterpret_cast<uint32_t*>(signs.data_ptr<int32_t>()); }

// A factor rounded to TF32, as it is and turned.
struct Prepared {
  Tensor rounded, turned;
  Prepared(const Tensor& x, int64_t padded)
      : rounded(at::empty({x.size(0), padded, x.size(2)}, x.options())),
        turned(at::empty({x.size(0), x.size(2), padded}, x.options())) {
    const bool dense = x.stride(2) == 1 && x.stride(1) == x.size(2);
    const Tensor from = dense ? x : x.contiguous();
    cuda::mlp_prepare(x.size(0), x.size(1), padded, x.size(2), from.data_ptr<float>(), from.stride(0),
                      rounded.data_ptr<float>(), turned.data_ptr<float>(), current_stream(x));
  }
  cuda::MlpTokens tokens() const { return {rounded.data_ptr<float>(), turned.data_ptr<float>()}; }
};

// Operands here have a leading [trials], x and the biases are dense; an absent bias has no elements.
class CudaMlp : public torch::autograd::Function<CudaMlp> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& W_in,
                        const Tensor& b_in, const Tensor& W_out, const Tensor& b_out) {
    const cuda::Mlp m = describe(x, W_in);
    const Prepared in(W_in, m.hidden), out(W_out, cuda::kMlpWidth);
    Tensor y = at::empty(x.sizes(), x.options());
    const Tensor signs = at::empty({cuda::mlp_sign_words(m)}, x.options().dtype(at::kInt));
    cuda::mlp_forward(m, data(x), data(in.rounded), data(b_in), data(out.rounded), data(b_out),
                      y.data_ptr<float>(), words(signs), current_stream(x));
    context->save_for_backward({x, in.rounded, in.turned, out.turned, b_in, signs});
    context->saved_data["db_out"] = b_out.numel() > 0;
    return y;
  }

  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const Variables saved = context->get_saved_variables();
    const Tensor &x = saved[0], &W_in = saved[1], &W_in_t = saved[2], &W_out_t = saved[3], &b_in = saved[4];
    const Tensor dy = gradients[0].contiguous();
    const cuda::Mlp m = describe(x, W_in);
    const Tensor dx = at::empty(x.sizes(), x.options());
    cuda::mlp_backward_tokens(m, data(dy), data(W_out_t), data(W_in_t), words(saved[5]), dx.data_ptr<float>(),
                              current_stream(x));
    const int64_t splits = cuda::mlp_splits(m);
    const auto parts = [&](at::IntArrayRef each) {
      std::vector<int64_t> shape = each.vec();
      shape.insert(shape.begin(), splits);
      return at::empty(shape, x.options());
    };
    const Tensor dW_in = parts(W_in.sizes()), dW_out = parts(W_in_t.sizes()),
                 db_in = parts({m.trials, m.hidden});
    const Prepared rows(x, m.padded_rows()), slopes(dy, m.padded_rows());
    cuda::mlp_backward_weights(m, rows.tokens(), slopes.tokens(), data(W_in), data(b_in), data(W_out_t),
                               dW_in.data_ptr<float>(), dW_out.data_ptr<float>(), db_in.data_ptr<float>(),
                               current_stream(x));
    const auto total = [&](const Tensor& all) { return splits == 1 ? all.squeeze(0) : all.sum(0); };
    return {dx, total(dW_in), b_in.numel() > 0 ? total(db_in) : Tensor(), total(dW_out),
            context->saved_data["db_out"].toBool() ? dy.sum(1) : Tensor()};
  }
};

}  // namespace

bool mlp_cuda_takes(const Tensor& x, const Tensor& W_in, const Tensor& W_out) {
  return tf32_allowed() && x.size(-1) == cuda::kMlpWidth && W_out.size(-2) == cuda::kMlpWidth &&
         x.size(-2) > 0 && W_in.size(-2) > 0 && W_in.size(-2) % cuda::kMlpHiddenStep == 0;
}

Tensor mlp_cuda(const Tensor& x, const Tensor& W_in, const Tensor& b_in, const Tensor& W_out,
                const Tensor& b_out) {
  const auto stacked = [&](const Tensor& p) { return x.dim() == 2 ? p.unsqueeze(0) : p; };
  const auto bias = [&](const Tensor& p) {
    return p.defined() ? aligned(stacked(p).contiguous()) : at::empty({0}, x.options());
  };
  const Tensor y =
      CudaMlp::apply(stacked(x).contiguous(), stacked(W_in), bias(b_in), stacked(W_out), bias(b_out));
  return x.dim() == 2 ? y.squeeze(0) : y;
}

}  // namespace rankscope
