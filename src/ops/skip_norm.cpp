#include "ops/skip_norm.h"

#include <torch/library.h>

#include "base/error.h"
#include "kernels/cuda/skip_norm.h"
#include "ops/checks.h"
#include "ops/function.h"
#include "ops/fused.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;
using Kind = SkipNorm::Kind;

const double kEpsilon = SkipNorm{}.epsilon;

// x [.., rows, width] as the kernels see it: dense, one trial where there is no leading dimension.
struct Sizes {
  int64_t trials, rows, width;
  explicit Sizes(const Tensor& x)
      : trials(x.dim() == 3 ? x.size(0) : 1), rows(x.size(-2)), width(x.size(-1)) {}
};

template <class T>
T* data(const Tensor& x) {
  return x.defined() ? x.data_ptr<T>() : nullptr;
}

// Parameters of one trial are dense; trials may lie apart.
Tensor dense_columns(const Tensor& p) {
  return p.defined() && p.size(-1) > 1 && p.stride(-1) != 1 ? p.contiguous() : p;
}
int64_t stride_of(const Tensor& p) { return p.defined() && p.dim() == 2 ? p.stride(0) : 0; }

SkipNorm describe(Kind kind, const Sizes& s) {
  return {kind, s.rows, s.width, kEpsilon, s.width, s.width, s.width};
}

cuda::SkipNorm describe_cuda(Kind kind, const Sizes& s, const Tensor& gain) {
  cuda::SkipNorm n;
  n.kind = kind == Kind::unit  ? cuda::SkipNormKind::unit
           : kind == Kind::rms ? cuda::SkipNormKind::rms
                               : cuda::SkipNormKind::layer;
  n.trials = s.trials;
  n.tokens = s.rows;
  n.width = s.width;
  n.epsilon = static_cast<float>(kEpsilon);
  n.parameter_stride = stride_of(gain);
  n.gradient_stride = gain.size(-1);
  return n;
}

// Calls use(T{}, trial): the CPU's kernels take one trial at a time.
template <class Use>
void on_cpu(const Tensor& x, Use use) {
  for (int64_t t = 0; t < Sizes(x).trials; ++t)
    x.scalar_type() == at::kDouble ? use(double{}, t) : use(float{}, t);
}

// LibTorch 1.13 takes no undefined tensors here: an absent u or bias is a vector of no elements.
class SkipNormFunction : public torch::autograd::Function<SkipNormFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x_, const Tensor& u_,
                        const Tensor& gain_, const Tensor& bias_, int64_t kind_) {
    const auto kind = static_cast<Kind>(kind_);
    const Tensor x = x_.contiguous(), u = u_.dim() == 1 ? Tensor() : u_.contiguous();
    const Tensor gain = dense_columns(gain_), bias = kind == Kind::layer ? dense_columns(bias_) : Tensor();
    const Sizes s(x);
    Tensor y = at::empty(x.sizes(), x.options()), inverse;
    if (x.is_cuda()) {
      // One stride serves gain and bias: they are views of one buffer, or both dense.
      const bool alike = !bias.defined() || stride_of(bias) == stride_of(gain);
      const Tensor g = alike ? gain : gain.contiguous(), b = alike ? bias : bias.contiguous();
      cuda::skip_norm_forward(describe_cuda(kind, s, g), data<float>(x), data<float>(u), data<float>(g),
                              data<float>(b), data<float>(y), current_stream(x));
    } else {
      inverse = at::empty({s.trials, s.rows}, x.options());
      on_cpu(x, [&]<class T>(T, int64_t t) {
        const int64_t at = t * s.rows * s.width;
        skip_norm_forward<T>(describe(kind, s), data<T>(x) + at, u.defined() ? data<T>(u) + at : nullptr,
                             data<T>(gain) + t * stride_of(gain),
                             bias.defined() ? data<T>(bias) + t * stride_of(bias) : nullptr, data<T>(y) + at,
                             data<T>(inverse) + t * s.rows);
      });
    }
    context->save_for_backward({x, u, gain, inverse});
    context->saved_data["kind"] = kind_;
    return y;
  }

  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const auto kind = static_cast<Kind>(context->saved_data["kind"].toInt());
    const Variables saved = context->get_saved_variables();
    const Tensor &x = saved[0], &u = saved[1], &gain = saved[2], &inverse = saved[3];
    const Tensor dy = gradients[0].contiguous();
    const Sizes s(x);
    const Tensor dx = at::empty(x.sizes(), x.options());
    const Tensor dgain = at::zeros(gain.sizes(), gain.options());
    const Tensor dbias = kind == Kind::layer ? at::zeros(gain.sizes(), gain.options()) : Tensor();
    if (x.is_cuda()) {
      const cuda::SkipNorm n = describe_cuda(kind, s, gain);
      const Tensor work = at::empty({cuda::skip_norm_workspace(n)}, x.options());
      cuda::skip_norm_backward(n, data<float>(x), data<float>(u), data<float>(gain), data<float>(dy),
                               data<float>(dx), nullptr, data<float>(dgain), data<float>(dbias),
                               data<float>(work), current_stream(x));
    } else {
      on_cpu(x, [&]<class T>(T, int64_t t) {
        const int64_t at = t * s.rows * s.width, p = t * gain.size(-1);
        skip_norm_backward<T>(describe(kind, s), data<T>(x) + at, u.defined() ? data<T>(u) + at : nullptr,
                              data<T>(gain) + t * stride_of(gain), data<T>(inverse) + t * s.rows,
                              data<T>(dy) + at, s.width, data<T>(dx) + at, s.width, data<T>(dgain) + p,
                              dbias.defined() ? data<T>(dbias) + p : nullptr);
      });
    }
    return {dx, u.defined() ? dx : Tensor(), dgain, dbias, Tensor()};
  }
};

}  // namespace

Tensor skip_norm_reference(Kind kind, const Tensor& x, const Tensor& u, const Tensor& gain,
                           const Tensor& bias) {
  const auto beside = [](const Tensor& p) { return p.dim() == 2 ? p.unsqueeze(1) : p; };
  const Tensor s = u.defined() ? x + u : x;
  if (kind == Kind::unit) return s * (beside(gain) / at::linalg_vector_norm(s, 2, {-1}, true));
  if (kind == Kind::rms) return s * at::rsqrt(s.square().mean(-1, true) + kEpsilon) * beside(gain);
  return std::get<0>(at::native_layer_norm(s, {s.size(-1)}, {}, {}, kEpsilon)) * beside(gain) + beside(bias);
}

Tensor skip_norm(Kind kind, const Tensor& x, const Tensor& u, const Tensor& gain, const Tensor& bias) {
  const bool fits = !x.is_cuda() || x.size(-1) <= cuda::kMaxNormWidth;
  if (!fused_for(x) || !fits) return skip_norm_reference(kind, x, u, gain, bias);
  const Tensor none = at::empty({0}, x.options());
  return SkipNormFunction::apply(x, u.defined() ? u : none, gain, bias.defined() ? bias : none,
                                 static_cast<int64_t>(kind));
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

SkipNorm::Kind norm_named(const std::string& name) {
  if (name == "unit") return SkipNorm::Kind::unit;
  if (name == "rms") return SkipNorm::Kind::rms;
  if (name == "layer") return SkipNorm::Kind::layer;
  throw unknown_name("norm", name, {"unit", "rms", "layer"});
}

Tensor call_skip_norm(const Tensor& x, const MaybeTensor& u, const Tensor& gain, const MaybeTensor& bias,
                      std::string kind) {  // NOLINT: the dispatcher hands strings over by value
  const SkipNorm::Kind norm = norm_named(kind);
  require_rows(x, "x");
  if (u.has_value()) {
    require_alike(*u, x, "u");
    require(u->sizes() == x.sizes(), "u must have the shape of x");
  }
  require(x.size(-1) >= 1, "x has no columns");
  require_parameter(gain, x, {norm == SkipNorm::Kind::unit ? 1 : x.size(-1)}, "gain");
  require(bias.has_value() == (norm == SkipNorm::Kind::layer),
          "the layer norm needs a bias, the others none");
  if (bias.has_value()) require_parameter(*bias, x, {x.size(-1)}, "bias");
  return skip_norm(norm, x, or_none(u), gain, or_none(bias));
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def("skip_norm(Tensor x, Tensor? u, Tensor gain, Tensor? bias, str kind) -> Tensor",
        rankscope::call_skip_norm);
}
