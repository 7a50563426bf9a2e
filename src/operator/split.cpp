#include "operator/split.h"

#include <c10/core/GradMode.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "model/attend.h"
#include "tensors/norm.h"
#include "tensors/operations.h"

namespace rankscope {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr double kLargeScore = 2;  // a row whose scores differ by more than this differs from q at order one
constexpr double kTiny =
    1e-200;  // below this a scale is only a factor: second orders are zero beside the first
// Tokens whose common part is less than this of the largest residual have nothing in common that is worth
// keeping apart. Norms divide by it and lose 2^-53 over this; at 2^-26 half of the digits are left.
constexpr double kApart = 0x1p-26;

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
void rescale(Split& t) {
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

// Of tokens with nothing in common: put together nothing cancels, and what they have in common then is split
// off again.
Split norm_apart(const Split& t, const NormSpec& norm, const Weights& w, std::string_view name) {
  const at::Tensor y = apply_norm(t.x + t.R * t.scale(), norm, w, name), common = y.mean(0);
  return {common, y - common, 0.0};
}

Split split_norm(const Split& t, const NormSpec& norm, const Weights& w, std::string_view name) {
  if (!norm.acts()) return t;
  const std::string stem = name.empty() ? "" : std::string(name) + ".";
  const bool centred = norm.kind == NormKind::layer, unit = norm.kind == NormKind::unit;
  const double d = static_cast<double>(t.x.size(0)), s = t.scale();
  const double count = unit ? 1.0 : d, epsilon = unit ? 0.0 : norm.epsilon;
  const at::Tensor m = centred ? t.x - t.x.mean() : t.x;
  const at::Tensor delta = centred ? t.R - t.R.mean(1, true) : t.R;
  const double v0 = m.square().sum().item<double>() / count + epsilon;
  const at::Tensor squares = delta.square().sum(1, true);  // [T, 1]
  if (count * v0 < kApart * kApart * s * s * squares.max().item<double>())
    return norm_apart(t, norm, w, name);
  const at::Tensor eta = (delta * m).sum(1, true).mul_(2.0).add_(squares, s).div_(count * v0);  // [T, 1]
  const at::Tensor f = inverse_root_over(eta, s);
  Split out{m / std::sqrt(v0), (delta * (1 + f * s) + m * f) / std::sqrt(v0), t.log_scale};
  if (const at::Tensor gain = gain_of_norm(norm, w, stem); gain.defined()) {
    out.x = out.x * gain;
    out.R = out.R * gain;
  }
  if (const at::Tensor bias = bias_of_norm(norm, w, stem); bias.defined()) out.x = out.x + bias;
  return out;
}

at::Tensor slope(const at::Tensor& x, Activation activation) {
  const at::Tensor one = at::ones_like(x);
  switch (activation) {
    case Activation::gelu:
      return at::gelu_backward(one, x, "none");
    case Activation::gelu_tanh:
      return at::gelu_backward(one, x, "tanh");
    case Activation::gelu_bloom: {
      constexpr double kRoot = 0.79788456, kCube = 0.044715;
      const at::Tensor t = at::tanh(kRoot * x * (1 + kCube * x * x));
      return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (kRoot + 3 * kRoot * kCube * x * x);
    }
    case Activation::quick_gelu: {
      const at::Tensor p = at::sigmoid(x * 1.702);
      return p + x * 1.702 * p * (1 - p);
    }
    case Activation::quick_gelu_7: {
      const at::Tensor p = at::sigmoid(x * 1.702);
      return at::where(x < 7, p + x * 1.702 * p * (1 - p), at::zeros_like(x));
    }
    case Activation::one_plus_7:
      return (x.abs() < 7).to(x.scalar_type());
    case Activation::relu:
      return (x > 0).to(x.scalar_type());
    case Activation::silu: {
      const at::Tensor p = at::sigmoid(x);
      return p + x * p * (1 - p);
    }
    case Activation::sigmoid: {
      const at::Tensor p = at::sigmoid(x);
      return p * (1 - p);
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

// (held.x + e^s held.R) * (carried.x + e^s' carried.R), number by number.
Split product(const Split& held, const Split& carried) {
  const double top = std::max(held.log_scale, carried.log_scale);
  if (top == kNothing) return {held.x * carried.x, carried.R, kNothing};
  const double h = std::exp(held.log_scale - top), c = std::exp(carried.log_scale - top);
  return {held.x * carried.x,
          held.R * carried.x * h + held.x * carried.R * c + held.R * carried.R * (h * carried.scale()), top};
}

// What a part's program makes of split tokens.
class SplitProgram {
 public:
  SplitProgram(const Step& step, const Program& program, const Weights& w, const Batch& batch)
      : step_(step), program_(program), w_(w), batch_(batch) {
    if (!step.reads.empty())
      throw Error(fmt::format("the branch {} reads the stream {}: the split arithmetic knows one stream",
                              step.name, step.reads));
  }

  Split run(const Split& t) {
    values_ = {t, t};
    for (const Operation& o : program_.operations) values_.push_back(made(o));
    return values_.back();
  }

 private:
  const Split& value(Value v) const { return values_[static_cast<size_t>(v)]; }
  const at::Tensor& bias_of(const Operation& o) const {
    static const at::Tensor none;
    return o.b.empty() ? none : w_.get_or_none(o.b);
  }
  at::Tensor map_of(const Operation& o) const {
    const at::Tensor& W = w_.get(o.W);
    return o.scale == 1.0 ? W : W * o.scale;
  }

  Split made(const Operation& o) const {
    switch (o.kind) {
      case Operation::Kind::linear: {
        const at::Tensor W = map_of(o);
        const Split& t = value(o.from);
        return {linear_or_plain(t.x, W, bias_of(o)), at::linear(t.R, W), t.log_scale};
      }
      case Operation::Kind::activation:
        return split_activation(value(o.from), o.activation);
      case Operation::Kind::multiply:
        return product(value(o.second), value(o.from));
      case Operation::Kind::sum:
        return sum(o);
      case Operation::Kind::repeat:
        return {repeat_chunks(value(o.from).x, o.groups, o.chunk),
                repeat_chunks(value(o.from).R, o.groups, o.chunk), value(o.from).log_scale};
      case Operation::Kind::attend:
        return attended(o);
      case Operation::Kind::norm:
        return normed(o);
      case Operation::Kind::beside:
        return beside(o);
      case Operation::Kind::convolve:  // the first tokens have fewer before them, so none have all in common
      case Operation::Kind::gates:
      case Operation::Kind::share:
      case Operation::Kind::experts:
        break;  // which experts a token takes jumps from token to token
    }
    throw Error(fmt::format("the split arithmetic does not follow the part {}", step_.part.name))
        .in("--arithmetic split")
        .hint("leave it out, or take this part out with --off");
  }

  // Values only: patterns of normed queries and keys are made of the tokens put together.
  Split normed(const Operation& o) const {
    const Split& t = value(o.from);
    if (o.groups == 1) return split_norm(t, o.norm, w_, o.W);
    return {t.x, t.R, t.log_scale};
  }

  static at::Tensor at_scale(const Split& t, double log_scale) {
    return log_scale == kNothing ? t.R : t.R * std::exp(t.log_scale - log_scale);
  }

  Split beside(const Operation& o) const {
    const Split &a = value(o.from), &b = value(o.second);
    const double top = std::max(a.log_scale, b.log_scale);
    return {set_beside(a.x, b.x, o.groups), set_beside(at_scale(a, top), at_scale(b, top), o.groups), top};
  }

  Split sum(const Operation& o) const {
    const Split &a = value(o.from), &b = value(o.second);
    const double top = std::max(a.log_scale, b.log_scale);
    return {a.x + b.x, at_scale(a, top) + at_scale(b, top), top};
  }

  Split attended(const Operation& o) const {
    const AttentionSpec& a = std::get<AttentionSpec>(step_.part.words);
    if (!rows_sum_to_one(a))
      throw Error(fmt::format("the split arithmetic needs patterns whose rows sum to one, not {}",
                              a.sinks ? "those of learned sinks" : a.variant));
    if (o.third >= kFirstMade && program_.made(o.third).groups > 1)
      throw Error("the split arithmetic does not follow values that are normed head by head");
    if (!a.heads_fixed.empty()) throw Error("a head that carries fixed numbers is no map of the tokens");
    const int64_t values = a.value_map ? a.kv_heads : 1;
    const at::Tensor V = by_head(value(o.third).R, values, a.heads);  // [H, T, d_v]
    const at::Tensor v = by_head(value(o.third).x, values, a.heads);  // [H, d_v]
    const bool bilinear = only_tokens_decide(a) && program_.maps_tokens();
    Split out = bilinear ? shared(o, a, V, v) : as_it_is(o, a, V, v);
    for (const int64_t h : a.heads_off) {
      out.x.select(0, h).zero_();
      out.R.select(0, h).zero_();
    }
    return {out.x.reshape({-1}), together(out.R), out.log_scale};
  }

  Split shared(const Operation& o, const AttentionSpec& a, const at::Tensor& V, const at::Tensor& v) const {
    const Split& t = value(kInput);
    const double s = t.scale(), s2 = s * s;
    const at::Tensor Q = by_head(value(o.from).R, a.heads, a.heads);
    const at::Tensor K = by_head(value(o.second).R, a.kv_heads, a.heads);
    const at::Tensor q0 = by_head(value(o.from).x, a.heads, a.heads);       // [H, d_qk]
    const at::Tensor E = at::bmm(Q, K.transpose(1, 2)) * a.scale;           // [H, T, T]
    const at::Tensor r = at::bmm(K, q0.unsqueeze(2)).squeeze(2) * a.scale;  // [H, T]
    const at::Tensor q = at::softmax(r * s, -1).unsqueeze(1);               // [H, 1, T]
    const at::Tensor u = expm1_over(E, s2);
    const at::Tensor e = (u * q).sum(-1, true);
    at::Tensor D = q * (u - e) / (1 + e * s2);                           // (P - 1 q^T) / s^2
    const at::Tensor large = E.abs().amax(-1, true) * s2 > kLargeScore;  // [H, T, 1]
    if (large.any().item<bool>())
      D = at::where(large, (at::softmax(E * s2 + (r * s).unsqueeze(1), -1) - q) / s2, D);
    return {v + at::bmm(q, V).squeeze(1) * s, at::bmm(D, V), 3 * t.log_scale};
  }

  Split as_it_is(const Operation& o, const AttentionSpec& a, const at::Tensor& V, const at::Tensor& v) const {
    const int64_t T = V.size(1);
    const at::Tensor q = whole(o.from), k = whole(o.second);
    at::Tensor P;
    for_each_group(
        {a, w_, step_.name, q, k, batch_, batch_}, [](int64_t, int64_t) { return int64_t{1}; },
        [&](const SampleGroup& g) { P = g.ready->pattern(0, 1, 0, T)[0]; });
    return {v.clone(), at::bmm(P, V), value(o.third).log_scale};
  }

  // Queries and keys of the tokens as they are: made after the two halves are put together.
  at::Tensor whole(Value v) const {
    if (v < kFirstMade) return value(kInput).x + value(kInput).R * value(kInput).scale();
    const Operation& o = program_.made(v);
    if (o.kind == Operation::Kind::norm) return apply_grouped_norm(whole(o.from), o.norm, o.groups, w_, o.W);
    if (o.kind == Operation::Kind::beside) return set_beside(whole(o.from), whole(o.second), o.groups);
    if (o.kind == Operation::Kind::activation) return apply_activation(whole(o.from).clone(), o.activation);
    if (o.kind == Operation::Kind::multiply) return whole(o.from) * whole(o.second);
    if (o.kind == Operation::Kind::sum) return whole(o.from) + whole(o.second);
    if (o.kind == Operation::Kind::repeat) return repeat_chunks(whole(o.from), o.groups, o.chunk);
    return linear_or_plain(whole(o.from), map_of(o), bias_of(o));
  }

  const Step& step_;
  const Program& program_;
  const Weights& w_;
  const Batch& batch_;
  std::vector<Split> values_;
};

double composite(const at::Tensor& a) {
  const at::Tensor b = a.abs();
  return std::sqrt(b.sum(0).max().item<double>()) * std::sqrt(b.sum(1).max().item<double>());
}

}  // namespace

struct SplitTokens::Impl {
  Split t;
};

SplitTokens::SplitTokens(const at::Tensor& X) : impl_(new Impl{{X.mean(0), X - X.mean(0), 0.0}}) {
  rescale(impl_->t);
}
SplitTokens::SplitTokens(SplitTokens&&) noexcept = default;
SplitTokens& SplitTokens::operator=(SplitTokens&&) noexcept = default;
SplitTokens::~SplitTokens() = default;

void SplitTokens::advance(const BlockSpec& block, const Weights& w, const Batch& batch) {
  const c10::NoGradGuard no_grad;
  Split& stream = impl_->t;
  const BlockPlan plan(block, stream.x.size(0));
  const Split start = stream;
  Split value;
  for (const Step& step : plan.steps) {
    switch (step.kind) {
      case Step::Kind::read:
        value = split_norm(step.from_start ? start : stream, step.norm, w, step.norm_name);
        if (step.replaces) stream = value;
        break;
      case Step::Kind::run:
        value = SplitProgram(step, plan.programs[static_cast<size_t>(step.branch)], w, batch).run(value);
        break;
      case Step::Kind::write:
        value = split_norm(value, step.norm, w, step.norm_name);
        if (step.scale != 1.0) value = {value.x * step.scale, value.R * step.scale, value.log_scale};
        if (step.channel_scale) {
          const at::Tensor& s = w.get(step.name + ".layer_scale");
          value = {value.x * s, value.R * s, value.log_scale};
        }
        rescale(value);  // before the sum: what a part writes is centred at its own scale
        break;
      case Step::Kind::join:
        if (step.skip) add(value, stream);
        stream = split_norm(value, step.norm, w, step.norm_name);
        rescale(stream);
        break;
    }
  }
}

void SplitTokens::norm(const NormSpec& norm, const Weights& weights, std::string_view name) {
  impl_->t = split_norm(impl_->t, norm, weights, name);
  rescale(impl_->t);
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
