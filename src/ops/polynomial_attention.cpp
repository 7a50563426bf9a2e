#include "ops/polynomial_attention.h"

#include <torch/library.h>

#include "kernels/cuda/weight_sums.h"
#include "ops/checks.h"
#include "ops/function.h"
#include "ops/fused.h"
#include "ops/linear_attention.h"
#include "ops/linear_attention_kernels.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;

// The sum of weights rides along as a value of one, behind the values; on a GPU rows begin at multiples of
// four floats, with zeros behind.
class PolynomialAttentionFunction : public torch::autograd::Function<PolynomialAttentionFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& q_, const Tensor& k_,
                        const Tensor& v_, int64_t degree) {
    const Tensor q = q_.contiguous(), k = k_.contiguous(), v = v_.contiguous();
    const Tensor beside = with_ones(v), none = at::empty({0}, v.options());
    const Tensor sums = linear_attention_values(q, k, beside, none, degree), out = over_weights(sums, v);
    context->save_for_backward({q, k, beside, none, sums, out});
    context->saved_data["degree"] = degree;
    return out;
  }

  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const Variables saved = context->get_saved_variables();
    const Tensor dsums = sums_gradients(saved[4], saved[5], gradients[0].contiguous());
    Variables d = linear_attention_gradients(saved[0], saved[1], saved[2], saved[3],
                                             context->saved_data["degree"].toInt(), dsums);
    d[2] = d[2].narrow(2, 0, saved[5].size(2));
    d.emplace_back();
    return d;
  }

 private:
  static cuda::WeightSums shape_of(const Tensor& v, const Tensor& beside) {
    return {v.size(0) * v.size(1), v.size(2), beside.size(2)};
  }

  static Tensor with_ones(const Tensor& v) {
    const int64_t e = v.size(2);
    if (!v.is_cuda()) return at::cat({v, at::ones_like(v.narrow(2, 0, 1))}, 2);
    const Tensor beside = at::empty({v.size(0), v.size(1), cuda::padded_values(e)}, v.options());
    cuda::values_beside_ones(shape_of(v, beside), v.data_ptr<float>(), beside.data_ptr<float>(),
                             current_stream(v));
    return beside;
  }

  static Tensor over_weights(const Tensor& sums, const Tensor& v) {
    const int64_t e = v.size(2);
    if (!v.is_cuda()) return sums.narrow(2, 0, e) / sums.narrow(2, e, 1);
    const Tensor out = at::empty_like(v);
    cuda::over_weights(shape_of(v, sums), sums.data_ptr<float>(), out.data_ptr<float>(), current_stream(v));
    return out;
  }

  static Tensor sums_gradients(const Tensor& sums, const Tensor& out, const Tensor& dout) {
    if (!out.is_cuda()) {
      const Tensor weight = sums.narrow(2, out.size(2), 1);
      return at::cat({dout, (dout * out).sum(2, true).neg()}, 2) / weight;
    }
    const Tensor dsums = at::empty_like(sums);
    cuda::over_weights_backward(shape_of(out, sums), sums.data_ptr<float>(), out.data_ptr<float>(),
                                dout.data_ptr<float>(), dsums.data_ptr<float>(), current_stream(out));
    return dsums;
  }
};

}  // namespace

Tensor polynomial_attention_reference(const Tensor& q, const Tensor& k, const Tensor& v, int64_t degree) {
  const int64_t e = v.size(2);
  const Tensor beside = at::cat({v, at::ones_like(v.narrow(2, 0, 1))}, 2);
  const Tensor sums = linear_attention_reference(q, k, beside, {}, degree);
  return sums.narrow(2, 0, e) / sums.narrow(2, e, 1);
}

Tensor polynomial_attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t degree) {
  if (!linear_attention_is_fused(q, v, degree)) return polynomial_attention_reference(q, k, v, degree);
  return PolynomialAttentionFunction::apply(q, k, v, degree);
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

Tensor call_polynomial_attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t degree) {
  require_running(q, k, v);
  require(degree >= 1 && degree <= kMaxDegree,
          fmt::format("the degree is a number from 1 to {}, not {}", kMaxDegree, degree));
  return polynomial_attention(q, k, v, degree);
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def("polynomial_attention(Tensor q, Tensor k, Tensor v, int degree) -> Tensor",
        rankscope::call_polynomial_attention);
}
