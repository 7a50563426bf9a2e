#include "ops/mlp_cuda.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/cuda/mlp.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;
using Variables = torch::autograd::variable_list;

const float* data(const Tensor& x) { return x.numel() > 0 ? x.data_ptr<float>() : nullptr; }

cuda::Mlp describe(const Tensor& x, const Tensor& W_in) { return {x.size(0), x.size(1), W_in.size(1)}; }

uint32_t* words(const Tensor& signs) { return reinterpret_cast<uint32_t*>(signs.data_ptr<int32_t>()); }

// Operands here are dense and have a leading [trials]; an absent bias has no elements.
class CudaMlp : public torch::autograd::Function<CudaMlp> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& W_in,
                        const Tensor& b_in, const Tensor& W_out, const Tensor& b_out) {
    const cuda::Mlp m = describe(x, W_in);
    Tensor y = at::empty(x.sizes(), x.options());
    const Tensor signs = at::empty({cuda::mlp_sign_words(m)}, x.options().dtype(at::kInt));
    cuda::mlp_forward(m, data(x), data(W_in), data(b_in), data(W_out), data(b_out), y.data_ptr<float>(),
                      words(signs), current_stream(x));
    context->save_for_backward({x, W_in, b_in, W_out, signs});
    context->saved_data["db_out"] = b_out.numel() > 0;
    return y;
  }

  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    const Variables in = context->get_saved_variables();
    const Tensor &x = in[0], &W_in = in[1], &b_in = in[2], &signs = in[4];
    const Tensor dy = gradients[0].contiguous();
    const cuda::Mlp m = describe(x, W_in);
    const Tensor W_in_t = W_in.transpose(1, 2).contiguous(), W_out_t = in[3].transpose(1, 2).contiguous();
    const Tensor dx = at::empty(x.sizes(), x.options());
    cuda::mlp_backward_tokens(m, data(dy), data(W_out_t), data(W_in_t), words(signs), dx.data_ptr<float>(),
                              current_stream(x));
    const int64_t splits = cuda::mlp_splits(m);
    const auto parts = [&](at::IntArrayRef each) {
      std::vector<int64_t> shape = each.vec();
      shape.insert(shape.begin(), splits);
      return at::empty(shape, x.options());
    };
    const Tensor dW_in = parts(W_in.sizes()), dW_out_t = parts(W_in.sizes()),
                 db_in = parts({m.trials, m.hidden});
    cuda::mlp_backward_weights(m, data(x), data(dy), data(W_in), data(b_in), data(W_out_t),
                               dW_in.data_ptr<float>(), dW_out_t.data_ptr<float>(), db_in.data_ptr<float>(),
                               current_stream(x));
    const auto total = [&](const Tensor& all) { return splits == 1 ? all.squeeze(0) : all.sum(0); };
    return {dx, total(dW_in), b_in.numel() > 0 ? total(db_in) : Tensor(), total(dW_out_t).transpose(1, 2),
            context->saved_data["db_out"].toBool() ? dy.sum(1) : Tensor()};
  }
};

}  // namespace

bool mlp_cuda_takes(const Tensor& x, const Tensor& W_in, const Tensor& W_out) {
  return at::globalContext().float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST &&
         x.size(-1) == cuda::kMlpWidth && W_out.size(-2) == cuda::kMlpWidth && x.size(-2) > 0 &&
         W_in.size(-2) > 0 && W_in.size(-2) % cuda::kMlpHiddenStep == 0;
}

Tensor mlp_cuda(const Tensor& x, const Tensor& W_in, const Tensor& b_in, const Tensor& W_out,
                const Tensor& b_out) {
  const auto dense = [&](const Tensor& p) {
    if (!p.defined()) return at::empty({0}, x.options());
    return x.dim() == 2 ? p.unsqueeze(0).contiguous() : p.contiguous();
  };
  const Tensor y = CudaMlp::apply(dense(x), dense(W_in), dense(b_in), dense(W_out), dense(b_out));
  return x.dim() == 2 ? y.squeeze(0) : y;
}

}  // namespace rankscope
