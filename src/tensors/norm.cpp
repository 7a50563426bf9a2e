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

}  // namespace rankscope
