#include "operator/part.h"

#include <algorithm>
#include <vector>

#include "attention/variant.h"
#include "model/norm.h"

namespace rankscope {
namespace {

constexpr int64_t kHiddenRows = 4096;  // rows of an MLP's hidden layer held at once

class Norm : public LinearPart {
 public:
  Norm(const at::Tensor& x, const NormSpec& norm, const Weights& weights, std::string_view name)
      : centred_(norm.kind == NormKind::layer) {
    const std::string stem = name.empty() ? "" : std::string(name) + ".";
    scale_ = norm_scale(x, norm);
    gain_ = weights.get(stem + "w");
    if (centred_) bias_ = weights.get(stem + "b");
  }

  at::Tensor apply(const at::Tensor& z) const override {
    at::Tensor out = centred_ ? z - z.mean(-1, true) : z.clone();
    return out.mul_(scale_).mul_(gain_);
  }
  at::Tensor adjoint(const at::Tensor& y) const override {
    const at::Tensor out = (y * gain_).mul_(scale_);
    return centred_ ? out - out.mean(-1, true) : out;
  }
  at::Tensor bias() const override { return bias_; }

 private:
  bool centred_;
  at::Tensor scale_, gain_, bias_;  // [N, 1], [d], [d]
};

class Attention : public FrozenAttention {
 public:
  Attention(const at::Tensor& x, const BlockSpec& block, const Weights& weights, const Batch& batch)
      : spec_(block.attention), W_V_(weights.get("attn.W_V")), W_O_(weights.get("attn.W_O")) {
    const int64_t N = x.size(0);
    const auto project = [&](const char* W, const char* b, int64_t heads) {
      return at::linear(x, weights.get(W), weights.get_or_none(b)).view({N, heads, spec_.d_qk});
    };
    const at::Tensor q = project("attn.W_Q", "attn.b_Q", spec_.heads);
    const at::Tensor k = project("attn.W_K", "attn.b_K", spec_.kv_heads);
    for (int64_t s = 0; s < batch.count();) {
      int64_t count = 1;
      while (s + count < batch.count() && batch.length(s + count) == batch.length(s)) ++count;
      add_group(q, k, weights, batch, s, count);
      s += count;
    }
    set_bias(weights, x);
  }

  int64_t heads() const override { return spec_.heads; }

  at::Tensor apply(const at::Tensor& z) const override { return at::linear(mix(z).flatten(2), W_O_); }

  at::Tensor apply_heads(const at::Tensor& z) const override {
    const at::Tensor mixed = mix(z).permute({2, 0, 1, 3});  // [H, K, N, d_v]
    const at::Tensor W = W_O_.view({W_O_.size(0), spec_.heads, spec_.d_v}).permute({1, 2, 0});
    return at::matmul(mixed, W.unsqueeze(1));
  }

  at::Tensor adjoint(const at::Tensor& y) const override {
    const int64_t K = y.size(0), KV = spec_.kv_heads, G = spec_.heads / KV, dv = spec_.d_v;
    const at::Tensor written = at::matmul(y, W_O_);  // [K, N, H * d_v]
    at::Tensor values = at::empty({K, y.size(1), KV * dv}, y.options());
    for (const Group& g : groups_) {
      const int64_t S = g.pattern.size(0), T = g.pattern.size(3);
      const at::Tensor w = written.narrow(1, g.begin, S * T)
                               .view({K, S, T, KV, G, dv})
                               .permute({1, 3, 4, 2, 0, 5})
                               .reshape({S * KV, G * T, K * dv});
      const at::Tensor back = at::bmm(g.pattern.view({S * KV, G * T, T}).transpose(1, 2), w);
      values.narrow(1, g.begin, S * T)
          .copy_(back.view({S, KV, T, K, dv}).permute({3, 0, 2, 1, 4}).reshape({K, S * T, KV * dv}));
    }
    return at::matmul(values, W_V_);
  }

  at::Tensor bias() const override { return bias_; }

  std::vector<at::Tensor> patterns() const override {
    std::vector<at::Tensor> out;
    for (const Group& g : groups_)
      for (int64_t s = 0; s < g.pattern.size(0); ++s) out.push_back(g.pattern[s]);
    return out;
  }

 private:
  struct Group {  // samples of one length, one behind another
    int64_t begin;
    at::Tensor pattern;  // [S, H, T, T]
  };

  void add_group(const at::Tensor& q, const at::Tensor& k, const Weights& weights, const Batch& batch,
                 int64_t first, int64_t count) {
    const int64_t begin = batch.offsets[static_cast<size_t>(first)], T = batch.length(first);
    const auto slice = [&](const at::Tensor& t) {
      return t.narrow(0, begin, count * T).view({count, T, t.size(1), t.size(2)});
    };
    const auto integers = [&](const std::vector<int64_t>& values) {
      return at::tensor(at::ArrayRef<int64_t>(values.data() + begin, static_cast<size_t>(count * T)),
                        at::kLong)
          .view({count, T})
          .to(q.device());
    };
    const at::Tensor positions = integers(batch.positions);
    const at::Tensor types = batch.has_types ? integers(batch.types) : at::Tensor();
    const at::Tensor qs = slice(q), ks = slice(k);
    const auto prepared =
        attention_variant(spec_.variant).prepare({spec_, weights, qs, ks, positions, types});
    at::Tensor pattern = prepared->pattern(0, count, 0, T).contiguous();
    for (const int64_t h : spec_.heads_off) pattern.select(1, h).zero_();
    groups_.push_back({begin, pattern});
  }

  void set_bias(const Weights& weights, const at::Tensor& x) {
    const at::Tensor &b_V = weights.get_or_none("attn.b_V"), &b_O = weights.get_or_none("attn.b_O");
    if (b_V.defined()) {
      const at::Tensor values = b_V.expand({1, x.size(0), b_V.size(0)});
      bias_ = at::linear(mix_values(values).flatten(2), W_O_).squeeze(0);
      if (b_O.defined()) bias_ += b_O;
    } else if (b_O.defined()) {
      bias_ = b_O;
    }
  }

  at::Tensor mix(const at::Tensor& z) const { return mix_values(at::linear(z, W_V_)); }

  // [K, N, KV * d_v] to [K, N, H, d_v]: the patterns applied.
  at::Tensor mix_values(const at::Tensor& v) const {
    const int64_t K = v.size(0), KV = spec_.kv_heads, G = spec_.heads / KV, dv = spec_.d_v;
    at::Tensor out = at::empty({K, v.size(1), spec_.heads, dv}, v.options());
    for (const Group& g : groups_) {
      const int64_t S = g.pattern.size(0), T = g.pattern.size(3);
      const at::Tensor values = v.narrow(1, g.begin, S * T)
                                    .reshape({K, S, T, KV, dv})
                                    .permute({1, 3, 2, 0, 4})
                                    .reshape({S * KV, T, K * dv});
      const at::Tensor mixed = at::bmm(g.pattern.view({S * KV, G * T, T}), values);
      out.narrow(1, g.begin, S * T)
          .copy_(mixed.view({S, KV, G, T, K, dv})
                     .permute({4, 0, 3, 1, 2, 5})
                     .reshape({K, S * T, spec_.heads, dv}));
    }
    return out;
  }

  AttentionSpec spec_;
  at::Tensor W_V_, W_O_, bias_;
  std::vector<Group> groups_;
};

double slope_at_zero(Activation activation) {
  switch (activation) {
    case Activation::gelu:
    case Activation::gelu_tanh:
    case Activation::quick_gelu:
    case Activation::silu:
      return 0.5;
    case Activation::relu:
      return 0.0;
    case Activation::tanh:
    case Activation::identity:
      return 1.0;
  }
  return 1.0;
}

// act(h) / h, entry by entry.
at::Tensor gain_of(const at::Tensor& h, const at::Tensor& activated, Activation activation) {
  return at::where(h == 0, at::full({}, slope_at_zero(activation), h.options()), activated / h);
}

// z -> (z W_in^T * G) W_out^T; without W_out the gains are the end.
class Gained : public LinearPart {
 public:
  Gained(const at::Tensor& W_in, const at::Tensor& b_in, const at::Tensor& gain, const at::Tensor& W_out,
         const at::Tensor& b_out)
      : W_in_(W_in), W_out_(W_out), gain_(gain) {
    if (b_in.defined()) bias_ = W_out.defined() ? at::linear(gain * b_in, W_out) : gain * b_in;
    if (b_out.defined()) bias_ = bias_.defined() ? bias_ + b_out : b_out;
  }

  at::Tensor apply(const at::Tensor& z) const override {
    return in_parts(z, [&](const at::Tensor& part) {
      const at::Tensor hidden = at::linear(part, W_in_).mul_(gain_);
      return W_out_.defined() ? at::linear(hidden, W_out_) : hidden;
    });
  }
  at::Tensor adjoint(const at::Tensor& y) const override {
    return in_parts(y, [&](const at::Tensor& part) {
      const at::Tensor hidden = W_out_.defined() ? at::matmul(part, W_out_).mul_(gain_) : part * gain_;
      return at::matmul(hidden, W_in_);
    });
  }
  at::Tensor bias() const override { return bias_; }

 private:
  template <class Call>
  static at::Tensor in_parts(const at::Tensor& z, Call call) {
    const int64_t K = z.size(0), step = std::max<int64_t>(1, kHiddenRows / std::max<int64_t>(1, z.size(1)));
    if (K <= step) return call(z);
    std::vector<at::Tensor> out;
    for (int64_t k = 0; k < K; k += step) out.push_back(call(z.narrow(0, k, std::min(step, K - k))));
    return at::cat(out);
  }

  at::Tensor W_in_, W_out_, gain_, bias_;
};

// act(u) alone: what is left of an MLP whose matrices were replaced by the identity.
class ActivationOnly : public LinearPart {
 public:
  explicit ActivationOnly(const at::Tensor& gain) : gain_(gain) {}
  at::Tensor apply(const at::Tensor& z) const override { return z * gain_; }
  at::Tensor adjoint(const at::Tensor& y) const override { return y * gain_; }
  at::Tensor bias() const override { return {}; }

 private:
  at::Tensor gain_;
};

}  // namespace

std::shared_ptr<const FrozenAttention> freeze_attention(const at::Tensor& x, const BlockSpec& block,
                                                        const Weights& weights, const Batch& batch) {
  return std::make_shared<Attention>(x, block, weights, batch);
}

std::shared_ptr<const LinearPart> freeze_norm(const at::Tensor& x, const NormSpec& norm,
                                              const Weights& weights, std::string_view name) {
  return std::make_shared<Norm>(x, norm, weights, name);
}

std::shared_ptr<const LinearPart> freeze_mlp(const at::Tensor& x, const MlpSpec& mlp, const Weights& w,
                                             at::Tensor& written) {
  if (mlp.kind == MlpKind::activation) {
    written = apply_activation(x.clone(), mlp.activation);
    return std::make_shared<ActivationOnly>(gain_of(x, written, mlp.activation));
  }
  const at::Tensor &W_in = w.get("mlp.W_in"), &b_in = w.get_or_none("mlp.b_in");
  const at::Tensor &W_out = w.get("mlp.W_out"), &b_out = w.get_or_none("mlp.b_out");
  const at::Tensor h = at::linear(x, W_in, b_in);
  at::Tensor gain, hidden;
  if (mlp.kind == MlpKind::gated) {
    gain = apply_activation(at::linear(x, w.get("mlp.W_gate"), w.get_or_none("mlp.b_gate")), mlp.activation);
    hidden = h * gain;
  } else {
    hidden = apply_activation(h.clone(), mlp.activation);
    gain = gain_of(h, hidden, mlp.activation);
  }
  written = at::linear(hidden, W_out, b_out);
  return std::make_shared<Gained>(W_in, b_in, gain, W_out, b_out);
}

std::shared_ptr<const LinearPart> freeze_dense(const at::Tensor& x, const at::Tensor& W, const at::Tensor& b,
                                               Activation activation, at::Tensor& written) {
  const at::Tensor h = at::linear(x, W, b);
  written = apply_activation(h.clone(), activation);
  return std::make_shared<Gained>(W, b, gain_of(h, written, activation), at::Tensor(), at::Tensor());
}

}  // namespace rankscope
