#include "tensors/norm.h"

namespace rankscope {

at::Tensor norm_scale(const at::Tensor& x, const NormSpec& norm) {
  if (norm.kind == NormKind::unit)
    return at::linalg_vector_norm(x, 2, {-1}, true).clamp_min_(norm.epsilon).reciprocal_();
  const at::Tensor c = norm.kind == NormKind::layer ? x - x.mean(-1, true) : x;
  return c.square().mean(-1, true).add_(norm.epsilon).rsqrt_();
}

namespace {

at::Tensor with_gains(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  const at::Tensor out = w.defined() ? x * w : x;
  return b.defined() ? out + b : out;
}

}  // namespace

at::Tensor gain_of_norm(const NormSpec& norm, const Weights& weights, const std::string& stem) {
  return norm.gain ? weights.get(stem + "w") : at::Tensor();
}

at::Tensor bias_of_norm(const NormSpec& norm, const Weights& weights, const std::string& stem) {
  return norm.kind == NormKind::layer && norm.bias ? weights.get(stem + "b") : at::Tensor();
}

at::Tensor apply_norm(const at::Tensor& x, const NormSpec& norm, const Weights& weights,
                      std::string_view name) {
  if (!norm.acts()) return x;
  const std::string stem = name.empty() ? "" : std::string(name) + ".";
  const at::Tensor w = gain_of_norm(norm, weights, stem), b = bias_of_norm(norm, weights, stem);
  if (weights.has(stem + "held")) {
    const bool centred = norm.kind == NormKind::layer;
    const at::Tensor out = (centred ? x - x.mean(-1, true) : x) * weights.get(stem + "held");
    return centred && w.defined() && b.defined() ? at::addcmul(b, out, w) : with_gains(out, w, b);
  }
  switch (norm.kind) {
    case NormKind::none:
      return x;
    case NormKind::layer:
      return at::layer_norm(x, {x.size(-1)}, w, b, norm.epsilon);
    case NormKind::rms: {
      const at::Tensor scale = x.square().mean(-1, true).add(norm.epsilon).rsqrt();
      const at::Tensor out = x * scale;
      return w.defined() ? at::Tensor(out).mul_(w) : out;
    }
    case NormKind::unit: {
      const at::Tensor size = at::linalg_vector_norm(x, 2, {-1}, true).clamp_min(norm.epsilon);
      return w.defined() ? x * (w / size) : x / size;
    }
  }
  return x;
}

at::Tensor apply_grouped_norm(const at::Tensor& x, const NormSpec& norm, int64_t groups,
                              const Weights& weights, const std::string& name) {
  if (!norm.acts()) return x;
  const at::Tensor parts = x.unflatten(-1, {groups, x.size(-1) / groups});
  const at::Tensor w = gain_of_norm(norm, weights, name + "."), b = bias_of_norm(norm, weights, name + ".");
  const at::Tensor centred = norm.kind == NormKind::layer ? parts - parts.mean(-1, true) : parts;
  const at::Tensor scaled = (centred * norm_scale(parts, norm)).flatten(-2);
  // Gains that all parts share are as long as one part.
  const auto spread = [&](const at::Tensor& t) {
    return t.defined() && t.size(0) != x.size(-1) ? t.repeat({groups}) : t;
  };
  return with_gains(scaled, spread(w), spread(b));
}

namespace {

at::Tensor activated(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return at::gelu(x, "none");
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::gelu_bloom:
      return x * 0.5 * (1.0 + at::tanh(0.79788456 * x * (1 + 0.044715 * x * x)));
    case Activation::quick_gelu:
      return x * at::sigmoid(x * 1.702);
    case Activation::quick_gelu_7: {
      const at::Tensor bounded = x.clamp_max(7.0);
      return bounded * at::sigmoid(bounded * 1.702);
    }
    case Activation::one_plus_7:
      return x.clamp(-7.0, 7.0) + 1.0;
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
    case Activation::gelu_bloom:
    case Activation::quick_gelu:
    case Activation::quick_gelu_7:
    case Activation::one_plus_7:
      return activated(x, activation);
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

at::Tensor repeat_chunks(const at::Tensor& x, int64_t times, int64_t chunk) {
  // Not repeat_interleave, which reads its count back from the device.
  const at::Tensor chunks = x.unflatten(-1, {x.size(-1) / chunk, 1, chunk});
  std::vector<int64_t> every = chunks.sizes().vec();
  every[every.size() - 2] = times;
  return chunks.expand(every).flatten(-3);
}

at::Tensor set_beside(const at::Tensor& shared, const at::Tensor& own, int64_t heads) {
  std::vector<int64_t> every = shared.sizes().vec();
  every.insert(every.end() - 1, heads);
  return at::cat({shared.unsqueeze(-2).expand(every), own.unflatten(-1, {heads, own.size(-1) / heads})}, -1)
      .flatten(-2);
}

}  // namespace rankscope
