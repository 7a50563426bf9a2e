#include "model/norm.h"

namespace rankscope {

at::Tensor apply_norm(const at::Tensor& x, const NormSpec& norm, const Weights& weights,
                      std::string_view name) {
  const std::string stem = name.empty() ? "" : std::string(name) + ".";
  switch (norm.kind) {
    case NormKind::none:
      return x;
    case NormKind::layer:
      return at::layer_norm(x, {x.size(-1)}, weights.get(stem + "w"), weights.get(stem + "b"), norm.epsilon);
    case NormKind::rms: {
      const at::Tensor scale = x.square().mean(-1, true).add_(norm.epsilon).rsqrt_();
      return (x * scale).mul_(weights.get(stem + "w"));
    }
    case NormKind::unit:
      return x *
             (weights.get(stem + "w") / at::linalg_vector_norm(x, 2, {-1}, true).clamp_min_(norm.epsilon));
  }
  return x;
}

at::Tensor apply_activation(at::Tensor x, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return at::gelu_(x, "none");
    case Activation::gelu_tanh:
      return at::gelu_(x, "tanh");
    case Activation::quick_gelu:
      return x * at::sigmoid(x * 1.702);
    case Activation::relu:
      return at::relu_(x);
    case Activation::silu:
      return at::silu_(x);
    case Activation::tanh:
      return at::tanh_(x);
    case Activation::identity:
      return x;
  }
  return x;
}

}  // namespace rankscope
