#include "operator/split.h"

#include <c10/core/GradMode.h>

#include <cmath>
#include <limits>

#include "attention/variant.h"
#include "base/error.h"
#include "model/norm.h"

namespace rankscope {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr double kLargeScore = 2;  // a row whose scores differ by more than this differs from q at order one
constexpr double kTiny =
    1e-200;  // below this a scale is only a factor: second orders are zero beside the first

// x is common to all tokens, e^log_scale R what tells them apart.
struct Split {
  at::Tensor x, R;  // [d], [T, d]
  double log_scale = 0;
  double scale() const { return std::exp(log_scale); }
};

// (expm1(s z)) / s and (expm1(-log1p(s z) / 2)) / s without losing anything to a small s.
at::Tensor expm1_over(const at::Tensor& z, double s) { return s > kTiny ? (z * s).expm1_().div_(s) : z; }
at::Tensor inverse_root_over(const at::Tensor& z, double s) {
  return s > kTiny ? (z * s).log1p_().mul_(-0.5).expm1_().div_(s) : z * -0.5;
}

// The mean moves into x, the largest entry becomes 1.
void settle(Split& t) {
  const at::Tensor mean = t.R.mean(0);
  t.x = t.x + mean * t.scale();
  t.R = t.R - mean;
  const double largest = t.R.abs().max().item<double>();
  if (!(largest > 0)) {
    if (std::isnan(largest)) return;
    t.log_scale = kNothing;
    return;
  }
  t.R = t.R / largest;
  t.log_scale += std::log(largest);
}

void add(Split& t, const Split& other) {
  t.x = t.x + other.x;
  const double top = std::max(t.log_scale, other.log_scale);
  if (top == kNothing) return;
  t.R = t.R * std::exp(t.log_scale - top) + other.R * std::exp(other.log_scale - top);
  t.log_scale = top;
}

at::Tensor linear_or_plain(const at::Tensor& x, const at::Tensor& W, const at::Tensor& b) {
  return b.defined() ? at::linear(x, W, b) : at::linear(x, W);
}

// Each KV head repeated for its query heads, heads in front: [.., KV * d] to [H, .., d].
at::Tensor by_head(const at::Tensor& t, int64_t kv, int64_t heads) {
  const int64_t d = t.size(-1) / kv;
  if (t.dim() == 1) return t.view({kv, 1, d}).expand({kv, heads / kv, d}).reshape({heads, d});
  return t.view({t.size(0), kv, d})
      .transpose(0, 1)
      .unsqueeze(1)
      .expand({kv, heads / kv, t.size(0), d})
      .reshape({heads, t.size(0), d});
}

at::Tensor together(const at::Tensor& z) { return z.transpose(0, 1).flatten(1); }  // [H, T, d] to [T, H * d]

class SplitAttention {
 public:
  SplitAttention(const AttentionSpec& spec, const Weights& w, const Batch& batch)
      : spec_(spec), w_(w), batch_(batch) {
    if (!attention_variant(spec.variant).row_stochastic)
      throw Error(
          fmt::format("the split arithmetic needs patterns whose rows sum to one, not {}", spec.variant));
  }

  Split run(const Split& t) const {
    const int64_t KV = spec_.kv_heads, H = spec_.heads;
    const at::Tensor V = by_head(at::linear(t.R, w_.get("attn.W_V")), KV, H);  // [H, T, d_v]
    const at::Tensor v =
        by_head(linear_or_plain(t.x, w_.get("attn.W_V"), w_.get_or_none("attn.b_V")), KV, H);  // [H, d_v]
    Split out = common_rows() ? shared(t, V, v) : as_it_is(t, V, v);
    const at::Tensor& W_O = w_.get("attn.W_O");
    for (const int64_t h : spec_.heads_off) {
      out.x.select(0, h).zero_();
      out.R.select(0, h).zero_();
    }
    out.x = linear_or_plain(out.x.reshape({-1}), W_O, w_.get_or_none("attn.b_O"));
    out.R = at::linear(together(out.R), W_O);
    return out;
  }

 private:
  // Whether equal tokens give equal rows: nothing but the tokens decides.
  bool common_rows() const {
    return spec_.variant == "softmax" && !spec_.causal && spec_.window == 0 &&
           (spec_.rotary_frequencies.empty() || !spec_.positions);
  }

  Split shared(const Split& t, const at::Tensor& V, const at::Tensor& v) const {
    const int64_t KV = spec_.kv_heads, H = spec_.heads;
    const double s = t.scale(), s2 = s * s;
    const at::Tensor Q = by_head(at::linear(t.R, w_.get("attn.W_Q")), H, H);
    const at::Tensor K = by_head(at::linear(t.R, w_.get("attn.W_K")), KV, H);
    const at::Tensor q0 =
        by_head(linear_or_plain(t.x, w_.get("attn.W_Q"), w_.get_or_none("attn.b_Q")), H, H);  // [H, d_qk]
    const at::Tensor E = at::bmm(Q, K.transpose(1, 2)) * spec_.scale;                         // [H, T, T]
    const at::Tensor r = at::bmm(K, q0.unsqueeze(2)).squeeze(2) * spec_.scale;                // [H, T]
    const at::Tensor q = at::softmax(r * s, -1).unsqueeze(1);                                 // [H, 1, T]
    const at::Tensor u = expm1_over(E, s2);
    const at::Tensor e = (u * q).sum(-1, true);
    at::Tensor D = q * (u - e) / (1 + e * s2);                           // (P - 1 q^T) / s^2
    const at::Tensor large = E.abs().amax(-1, true) * s2 > kLargeScore;  // [H, T, 1]
    if (large.any().item<bool>())
      D = at::where(large, (at::softmax(E * s2 + (r * s).unsqueeze(1), -1) - q) / s2, D);
    return {v + at::bmm(q, V).squeeze(1) * s, at::bmm(D, V), 3 * t.log_scale};
  }

  Split as_it_is(const Split& t, const at::Tensor& V, const at::Tensor& v) const {
    const int64_t T = t.R.size(0);
    const at::Tensor X = t.x + t.R * t.scale();
    const auto project = [&](const char* W, const char* b, int64_t heads) {
      return linear_or_plain(X, w_.get(W), w_.get_or_none(b)).view({1, T, heads, spec_.d_qk});
    };
    const at::Tensor q = project("attn.W_Q", "attn.b_Q", spec_.heads);
    const at::Tensor k = project("attn.W_K", "attn.b_K", spec_.kv_heads);
    const at::Tensor positions = at::tensor(batch_.positions, at::kLong).view({1, T});
    const at::Tensor types =
        batch_.has_types ? at::tensor(batch_.types, at::kLong).view({1, T}) : at::Tensor();
    const at::Tensor P =
        attention_variant(spec_.variant).prepare({spec_, w_, q, k, positions, types})->pattern(0, 1, 0, T)[0];
    return {v.clone(), at::bmm(P, V), t.log_scale};
  }

  const AttentionSpec& spec_;
  const Weights& w_;
  const Batch& batch_;
};

Split split_norm(const Split& t, const NormSpec& norm, const Weights& w, std::string_view name) {
  if (norm.kind == NormKind::none) return t;
  const std::string stem = name.empty() ? "" : std::string(name) + ".";
  const bool centred = norm.kind == NormKind::layer, unit = norm.kind == NormKind::unit;
  const double d = static_cast<double>(t.x.size(0)), s = t.scale();
  const double count = unit ? 1.0 : d, epsilon = unit ? 0.0 : norm.epsilon;
  const at::Tensor m = centred ? t.x - t.x.mean() : t.x;
  const at::Tensor delta = centred ? t.R - t.R.mean(1, true) : t.R;
  const double v0 = m.square().sum().item<double>() / count + epsilon;
  const at::Tensor eta =
      (delta * m).sum(1, true).mul_(2.0).add_(delta.square().sum(1, true), s).div_(count * v0);  // [T, 1]
  const at::Tensor f = inverse_root_over(eta, s);
  Split out{m / std::sqrt(v0), (delta * (1 + f * s) + m * f) / std::sqrt(v0), t.log_scale};
  const at::Tensor& gain = w.get(stem + "w");
  out.x = out.x * gain;
  out.R = out.R * gain;
  if (centred) out.x = out.x + w.get(stem + "b");
  return out;
}

at::Tensor slope(const at::Tensor& x, Activation activation) {
  const at::Tensor one = at::ones_like(x);
  switch (activation) {
    case Activation::gelu:
      return at::gelu_backward(one, x, "none");
    case Activation::gelu_tanh:
      return at::gelu_backward(one, x, "tanh");
    case Activation::quick_gelu: {
      const at::Tensor p = at::sigmoid(x * 1.702);
      return p + x * 1.702 * p * (1 - p);
    }
    case Activation::relu:
      return (x > 0).to(x.scalar_type());
    case Activation::silu: {
      const at::Tensor p = at::sigmoid(x);
      return p + x * p * (1 - p);
    }
    case Activation::tanh:
      return 1 - at::tanh(x).square();
    case Activation::identity:
      return one;
  }
  return one;
}

// (act(h + s d) - act(h)) / s: a plain difference where it is large, the mean slope between the two points
// (three Gauss points) where it would cancel.
Split split_activation(const Split& t, Activation activation) {
  constexpr double kDirect = 1e-2;
  const double s = t.scale();
  const at::Tensor base = apply_activation(t.x.clone(), activation);
  constexpr double kNode = 0.3872983346207417;  // sqrt(3/5) / 2
  at::Tensor mean = slope(t.x + t.R * (0.5 * s), activation) * (4.0 / 9);
  for (const double at : {0.5 - kNode, 0.5 + kNode})
    mean = mean + slope(t.x + t.R * (at * s), activation) * (2.5 / 9);
  at::Tensor R = t.R * mean;
  if (s > kTiny) {
    const at::Tensor direct = (apply_activation(t.x + t.R * s, activation) - base) / s;
    R = at::where((t.R * s).abs() > kDirect, direct, R);
  }
  return {base, R, t.log_scale};
}

Split split_linear(const Split& t, const Weights& w, const char* W, const char* b) {
  return {linear_or_plain(t.x, w.get(W), w.get_or_none(b)), at::linear(t.R, w.get(W)), t.log_scale};
}

Split split_mlp(const Split& t, const MlpSpec& mlp, const Weights& w) {
  if (mlp.kind == MlpKind::activation) return split_activation(t, mlp.activation);
  Split hidden = split_linear(t, w, "mlp.W_in", "mlp.b_in");
  if (mlp.kind == MlpKind::gated) {
    const Split gate = split_activation(split_linear(t, w, "mlp.W_gate", "mlp.b_gate"), mlp.activation);
    hidden.R = gate.R * hidden.x + gate.x * hidden.R + gate.R * hidden.R * t.scale();
    hidden.x = gate.x * hidden.x;
  } else {
    hidden = split_activation(hidden, mlp.activation);
  }
  return split_linear(hidden, w, "mlp.W_out", "mlp.b_out");
}

double composite(const at::Tensor& a) {
  const at::Tensor b = a.abs();
  return std::sqrt(b.sum(0).max().item<double>()) * std::sqrt(b.sum(1).max().item<double>());
}

}  // namespace

struct SplitTokens::Impl {
  Split t;
};

SplitTokens::SplitTokens(const at::Tensor& X) : impl_(new Impl{{X.mean(0), X - X.mean(0), 0.0}}) {
  settle(impl_->t);
}
SplitTokens::SplitTokens(SplitTokens&&) noexcept = default;
SplitTokens& SplitTokens::operator=(SplitTokens&&) noexcept = default;
SplitTokens::~SplitTokens() = default;

SplitTokens SplitTokens::clone() const {
  SplitTokens out(at::zeros({2, 1}, at::kDouble));
  out.impl_->t = impl_->t;  // tensors are never changed in place
  return out;
}

void SplitTokens::advance(const BlockSpec& block, const Weights& w, const Batch& batch) {
  const c10::NoGradGuard no_grad;
  const bool pre = block.norm.place == NormPlace::pre;
  Split& t = impl_->t;
  Split u = SplitAttention(block.attention, w, batch).run(pre ? split_norm(t, block.norm, w, "ln1") : t);
  settle(u);  // before the sum: what attention writes is centred at its own scale
  if (block.attention_skip) add(u, t);
  if (!pre) u = split_norm(u, block.norm, w, "ln1");
  settle(u);
  t = u;
  if (block.mlp.kind == MlpKind::none) return;
  Split y = split_mlp(pre ? split_norm(u, block.norm, w, "ln2") : u, block.mlp, w);
  settle(y);
  if (block.mlp_skip) add(y, u);
  if (!pre) y = split_norm(y, block.norm, w, "ln2");
  settle(y);
  t = y;
}

void SplitTokens::norm(const NormSpec& norm, const Weights& weights, std::string_view name) {
  impl_->t = split_norm(impl_->t, norm, weights, name);
  settle(impl_->t);
}

SplitResidual SplitTokens::residual() const {
  const Split& t = impl_->t;
  const at::Tensor X = whole();
  const double l1inf = std::log(composite(t.R)) + t.log_scale,
               fro = std::log(t.R.norm().item<double>()) + t.log_scale;
  return {l1inf, l1inf - std::log(composite(X)), fro, fro - std::log(X.norm().item<double>())};
}

at::Tensor SplitTokens::whole() const { return impl_->t.x + impl_->t.R * impl_->t.scale(); }
at::Tensor SplitTokens::common() const { return impl_->t.x; }
at::Tensor SplitTokens::unit() const { return impl_->t.R; }
double SplitTokens::log_scale() const { return impl_->t.log_scale; }

}  // namespace rankscope
