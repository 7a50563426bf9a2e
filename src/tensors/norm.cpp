#include "tensors/norm.h"

namespace rankscope {

at::Tensor norm_scale(const at::Tensor& x, const NormSpec& norm) {
  if (norm.kind == NormKind::unit)
    return at::linalg_vector_norm(x, 2, {-1}, true).clamp_min_(norm.epsilon).reciprocal_();
  const at::Tensor c = norm.kind == NormKind::layer ? x - x.mean(-1, true) : x;
  return c.square().mean(-1, true).add_(norm.epsilon).rsqrt_();
}

at::Tensor apply_norm(const at::Tensor& x, const NormSpec& norm, const Weights& weights,
                      std::string_view name) {
  if (!norm.acts()) return x;
  const std::string stem = name.empty() ? "" : std::string(name) + ".";
  if (weights.has(stem + "held")) {
    const bool centred = norm.kind == NormKind::layer;
    const at::Tensor out = (centred ? x - x.mean(-1, true) : x) * weights.get(stem + "held");
    return centred ? at::addcmul(weights.get(stem + "b"), out, weights.get(stem + "w"))
                   : out * weights.get(stem + "w");
  }
  switch (norm.kind) {
    case NormKind::none:
      return x;
    case NormKind::layer:
      return at::layer_norm(x, {x.size(-1)}, weights.get(stem + "w"), weights.get(stem + "b"), norm.epsilon);
    case NormKind::rms: {
      const at::Tensor scale = x.square().mean(-1, true).add(norm.epsilon).rsqrt();
      return (x * scale).mul_(weights.get(stem + "w"));
    }
    case NormKind::unit:
      return x * (weights.get(stem + "w") / at::linalg_vector_norm(x, 2, {-1}, true).clamp_min(norm.epsilon));
  }
  return x;
}

namespace {

at::Tensor activated(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return at::gelu(x, "none");
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::quick_gelu:
      return x * at::sigmoid(x * 1.702);
    case Activation::relu:
      return at::relu(x);
    case Activation::silu:
      return at::silu(x);
    case Activation::sigmoid:
      return at::sigmoid(x);
    case Activation::tanh:
      return at::tanh(x);
    case Activation::identity:
      return x;
  }
  return x;
}

}  // namespace

at::Tensor apply_activation(at::Tensor x, Activation activation, bool in_place) {
  if (!in_place) return activated(x, activation);
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
    case Activation::sigmoid:
      return at::sigmoid_(x);
    case Activation::tanh:
      return at::tanh_(x);
    case Activation::identity:
      return x;
  }
  return x;
}

at::Tensor shares_of(const at::Tensor& scores, int64_t active, int64_t width) {
  const auto [largest, which] = at::topk(scores, active, -1);
  const at::Tensor shares = at::zeros_like(scores).scatter(-1, which, at::softmax(largest, -1));
  return shares.repeat_interleave(width / scores.size(-1), -1);
}

}  // namespace rankscope
