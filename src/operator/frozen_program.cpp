// A part's program with what depends on the input held: along the way from its input to what it writes lie
// linear maps, gains (activations, gates), short convolutions and at most one mixing of tokens by patterns.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "model/attend.h"
#include "model/convolve.h"
#include "model/delta_gates.h"
#include "model/experts.h"
#include "operator/gain.h"
#include "operator/part.h"
#include "tensors/norm.h"
#include "tensors/operations.h"

namespace rankscope {
namespace {

constexpr int64_t kHiddenRows = 4096;  // rows of an MLP's hidden layer held at once

// The patterns of a batch, and how they mix values.
class Mixing {
 public:
  Mixing(const Attending& in, int64_t value_width)
      : H_(in.spec.heads), KV_(value_width / in.spec.d_v), dv_(in.spec.d_v) {
    if (!in.spec.heads_fixed.empty())
      throw Error("a head that carries fixed numbers is no map of the tokens");
    const auto unlimited = [&](int64_t, int64_t) { return in.batch.count(); };
    for_each_group(in, unlimited, [&](const SampleGroup& g) {
      at::Tensor pattern = g.ready->pattern(0, g.count, 0, g.length).contiguous();
      for (const int64_t h : in.spec.heads_off) pattern.select(1, h).zero_();
      groups_.push_back({g.begin, pattern});
    });
  }

  int64_t heads() const { return H_; }

  // [K, N, KV * d_v] to [K, N, H, d_v].
  at::Tensor apply(const at::Tensor& v) const {
    const int64_t K = v.size(0), G = H_ / KV_;
    at::Tensor out = at::empty({K, v.size(1), H_, dv_}, v.options());
    for (const Group& g : groups_) {
      const int64_t S = g.pattern.size(0), T = g.pattern.size(3);
      const at::Tensor values = v.narrow(1, g.begin, S * T)
                                    .reshape({K, S, T, KV_, dv_})
                                    .permute({1, 3, 2, 0, 4})
                                    .reshape({S * KV_, T, K * dv_});
      const at::Tensor mixed = at::bmm(g.pattern.view({S * KV_, G * T, T}), values);
      out.narrow(1, g.begin, S * T)
          .copy_(mixed.view({S, KV_, G, T, K, dv_}).permute({4, 0, 3, 1, 2, 5}).reshape({K, S * T, H_, dv_}));
    }
    return out;
  }

  // [K, N, H * d_v] back to [K, N, KV * d_v].
  at::Tensor adjoint(const at::Tensor& z) const {
    const int64_t K = z.size(0), G = H_ / KV_;
    at::Tensor values = at::empty({K, z.size(1), KV_ * dv_}, z.options());
    for (const Group& g : groups_) {
      const int64_t S = g.pattern.size(0), T = g.pattern.size(3);
      const at::Tensor w = z.narrow(1, g.begin, S * T)
                               .view({K, S, T, KV_, G, dv_})
                               .permute({1, 3, 4, 2, 0, 5})
                               .reshape({S * KV_, G * T, K * dv_});
      const at::Tensor back = at::bmm(g.pattern.view({S * KV_, G * T, T}).transpose(1, 2), w);
      values.narrow(1, g.begin, S * T)
          .copy_(back.view({S, KV_, T, K, dv_}).permute({3, 0, 2, 1, 4}).reshape({K, S * T, KV_ * dv_}));
    }
    return values;
  }

  std::vector<at::Tensor> patterns() const {
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
  int64_t H_, KV_, dv_;  // KV_: heads of values
  std::vector<Group> groups_;
};

// The experts that tokens take, each with its activations and gates held.
class TakenExperts {
 public:
  TakenExperts(const at::Tensor& x, const at::Tensor& shares, const at::Tensor& always, const Operation& o,
               const Weights& weights)
      : tokens_(x.size(0)), width_(o.width) {
    for_each_taken(
        o, shares, always, [&](const std::string& name, const at::Tensor& tokens, const at::Tensor& share) {
          all_.push_back(held(x.index_select(0, tokens), tokens, share, expert_of(o, weights, name), o));
        });
  }

  // [K, N, d] to [K, N, d].
  at::Tensor apply(const at::Tensor& z) const {
    at::Tensor out = at::zeros({z.size(0), tokens_, width_}, z.options());
    for (const One& e : all_)
      out.index_add_(1, e.tokens,
                     at::matmul(at::linear(z.index_select(1, e.tokens), e.in).mul_(e.gain), e.out));
    return out;
  }
  at::Tensor adjoint(const at::Tensor& y) const {
    at::Tensor out = at::zeros({y.size(0), tokens_, width_}, y.options());
    for (const One& e : all_)
      out.index_add_(1, e.tokens,
                     at::matmul(at::linear(y.index_select(1, e.tokens), e.out).mul_(e.gain), e.in));
    return out;
  }
  // What they write for nothing, [N, d]; undefined where they have no biases.
  at::Tensor bias() const {
    at::Tensor out;
    for (const One& e : all_) {
      if (!e.bias.defined()) continue;
      if (!out.defined()) out = at::zeros({tokens_, width_}, e.bias.options());
      out.index_add_(0, e.tokens, e.bias);
    }
    return out;
  }

 private:
  struct One {
    at::Tensor tokens, in, gain, out, bias;  // [n], [f, d], [n, f], [f, d], [n, d]
  };

  // What is carried must be nothing where the token is nothing: the gate, where the other side adds a one.
  static One held(const at::Tensor& x, const at::Tensor& tokens, const at::Tensor& share, const Expert& e,
                  const Operation& o) {
    const bool by_gate = o.gated && o.other != Activation::identity;
    const at::Tensor &W = by_gate ? e.W_gate : e.W_in, &b = by_gate ? e.b_gate : e.b_in;
    at::Tensor gain;
    if (o.gated && !by_gate) {
      gain = apply_activation(at::linear(x, e.W_gate, e.b_gate), o.activation, false);
    } else {
      const at::Tensor h = at::linear(x, W, b);
      gain = gain_of(h, apply_activation(h, o.activation, false), o.activation);
      if (by_gate) gain = gain * apply_activation(at::linear(x, e.W_in, e.b_in), o.other, false);
    }
    One one{tokens, W, share.defined() ? gain * share.unsqueeze(1) : gain, e.W_out.t().contiguous(), {}};
    if (b.defined()) one.bias = at::matmul(one.gain * b, one.out);
    if (e.b_out.defined()) one.bias = one.bias + (share.defined() ? share.unsqueeze(1) * e.b_out : e.b_out);
    return one;
  }

  int64_t tokens_, width_;
  std::vector<One> all_;
};

// One piece of the way: a map W with its bias, a gain, the mixing of tokens, experts, a convolution by W over
// the samples of a batch, or a bias alone.
struct Link {
  at::Tensor W = {}, b = {}, gain = {};
  const Mixing* mixing = nullptr;
  std::shared_ptr<const TakenExperts> experts = {};
  const Batch* convolved = nullptr;
  bool passes() const { return !W.defined() && !gain.defined() && !mixing && !experts; }
};

class Held : public FrozenProgram {
 public:
  Held(std::vector<Link> links, std::shared_ptr<const Mixing> mixing, int64_t tokens)
      : links_(std::move(links)), mixing_(std::move(mixing)), tokens_(tokens) {
    set_bias();
  }

  int64_t heads() const override { return mixing_ ? mixing_->heads() : 0; }

  at::Tensor apply(const at::Tensor& z) const override {
    return in_parts(z, [&](const at::Tensor& part) { return through(part, links_.begin(), links_.end()); });
  }

  at::Tensor adjoint(const at::Tensor& y) const override {
    return in_parts(y, [&](at::Tensor part) {
      bool own = false;  // the first one must not write into what it was given
      for (auto link = links_.rbegin(); link != links_.rend(); ++link) {
        if (link->passes()) continue;
        part = link->mixing           ? link->mixing->adjoint(part)
               : link->experts        ? link->experts->adjoint(part)
               : link->convolved      ? convolve_back(part, link->W, *link->convolved)
               : link->gain.defined() ? own ? part.mul_(link->gain) : part * link->gain
                                      : at::matmul(part, link->W);
        own = true;
      }
      return part;
    });
  }

  at::Tensor apply_heads(const at::Tensor& z) const override {
    auto link = std::find_if(links_.begin(), links_.end(), [](const Link& l) { return l.mixing; });
    const int64_t H = heads();
    at::Tensor mixed =
        link->mixing->apply(through(z, links_.begin(), link)).permute({2, 0, 1, 3});  // [H, K, N, d_v]
    for (++link; link != links_.end() && (link->gain.defined() || link->passes()); ++link)
      if (!link->passes()) mixed = mixed * link->gain.view({1, tokens_, H, -1}).permute({2, 0, 1, 3});
    if (links_.end() - link != 1) throw Error("the heads of this part do not write one by one");
    const at::Tensor& W_O = link->W;
    const at::Tensor W = W_O.view({W_O.size(0), H, W_O.size(1) / H}).permute({1, 2, 0});
    return at::matmul(mixed, W.unsqueeze(1));
  }

  at::Tensor bias() const override { return bias_; }
  std::vector<at::Tensor> patterns() const override {
    return mixing_ ? mixing_->patterns() : std::vector<at::Tensor>{};
  }

 private:
  using Place = std::vector<Link>::const_iterator;

  static at::Tensor through(at::Tensor z, Place from, Place to) {
    bool own = false;  // the first one must not write into what it was given
    for (auto link = from; link != to; ++link) {
      if (link->passes()) continue;
      z = link->mixing           ? link->mixing->apply(z).flatten(2)
          : link->experts        ? link->experts->apply(z)
          : link->convolved      ? convolve(z, link->W, *link->convolved)
          : link->gain.defined() ? own ? z.mul_(link->gain) : z * link->gain
                                 : at::linear(z, link->W);
      own = true;
    }
    return z;
  }

  // What the links make of nothing.
  void set_bias() {
    for (auto link = links_.begin(); link != links_.end(); ++link) {
      if (bias_.defined() && (link->mixing || link->experts || link->convolved))
        bias_ = through(bias_.expand({1, tokens_, bias_.size(-1)}), link, link + 1).squeeze(0);
      else if (bias_.defined())
        bias_ = through(bias_, link, link + 1);
      const at::Tensor own = link->experts ? link->experts->bias() : link->b;
      if (own.defined()) bias_ = bias_.defined() ? bias_ + own : own;
    }
  }

  // The streams in turn, as many at once as the hidden layer has room for; patterns take them all together.
  template <class Call>
  at::Tensor in_parts(const at::Tensor& z, Call call) const {
    const int64_t K = z.size(0), step = std::max<int64_t>(1, kHiddenRows / std::max<int64_t>(1, z.size(1)));
    if (K <= step || mixing_) return call(z);
    std::vector<at::Tensor> out;
    for (int64_t k = 0; k < K; k += step) out.push_back(call(z.narrow(0, k, std::min(step, K - k))));
    return at::cat(out);
  }

  std::vector<Link> links_;
  std::shared_ptr<const Mixing> mixing_;
  int64_t tokens_;
  at::Tensor bias_;
};

// Walks back from what the program writes to its input, holding what it meets beside the way.
class Freezing {
 public:
  Freezing(const at::Tensor& x, const Step& step, const Program& program, const Weights& weights,
           const Batch& batch)
      : step_(step), program_(program), weights_(weights), batch_(batch) {
    known_[kInput] = known_[kOther] = x;
    Value at = last();
    while (at >= kFirstMade) at = add_link(program.made(at));
    std::reverse(links_.begin(), links_.end());
  }

  std::shared_ptr<const Held> held(int64_t tokens) const {
    return std::make_shared<Held>(links_, mixing_, tokens);
  }
  /// What the program writes, without the detour of frozen links.
  at::Tensor plain() { return value(last()); }

 private:
  Value last() const { return static_cast<Value>(program_.operations.size()) - 1 + kFirstMade; }

  // Puts down what `o` does to the value it carries on, and names that value.
  Value add_link(const Operation& o) {
    switch (o.kind) {
      case Operation::Kind::linear:
        links_.push_back({map_of(o), bias_of(o), {}, nullptr});
        return o.from;
      case Operation::Kind::activation: {
        const at::Tensor h = value(o.from);
        const at::Tensor activated = value(o);
        links_.push_back({{}, {}, gain_of(h, activated, o.activation), nullptr});
        return o.from;
      }
      case Operation::Kind::multiply:
        links_.push_back({{}, {}, value(o.second), nullptr});
        return o.from;
      case Operation::Kind::sum:
        links_.push_back({{}, value(o.second), {}, nullptr});
        return o.from;
      case Operation::Kind::attend:
        links_.push_back({{}, {}, {}, &mixing(o)});
        return o.third;
      case Operation::Kind::norm:
        if (o.norm.acts()) links_.push_back({{}, {}, held_norm(o), nullptr});
        return o.from;
      case Operation::Kind::experts:
        links_.push_back(
            {{},
             {},
             {},
             nullptr,
             std::make_shared<TakenExperts>(value(o.from), value(o.second), always(o), o, weights_)});
        return o.from;
      case Operation::Kind::convolve:
        links_.push_back({.W = weights_.get(o.W), .convolved = &batch_});
        return o.from;
      case Operation::Kind::gates:
      case Operation::Kind::share:
      case Operation::Kind::beside:
      case Operation::Kind::repeat:
        break;  // held, never carried
    }
    throw Error("an operation that nobody freezes");
  }

  // A norm that centres nothing is a gain once the size of its tokens is held.
  at::Tensor held_norm(const Operation& o) {
    if (o.norm.kind == NormKind::layer) throw Error("a norm on values that centres them is not frozen");
    const at::Tensor parts = value(o.from).unflatten(-1, {o.groups, -1});  // [N, groups, w]
    at::Tensor scale = norm_scale(parts, o.norm).expand_as(parts);
    if (o.norm.gain) {
      const at::Tensor gain = weights_.get(o.W + ".w");  // [w], or [groups * w] where every part has its own
      scale = scale * (gain.numel() == parts.size(2) ? gain : gain.view({o.groups, -1}));
    }
    return scale.flatten(1);
  }

  at::Tensor map_of(const Operation& o) const {
    const at::Tensor& W = weights_.get(o.W);
    return o.scale == 1.0 ? W : W * o.scale;
  }
  at::Tensor bias_of(const Operation& o) const {
    return o.b.empty() ? at::Tensor() : weights_.get_or_none(o.b);
  }
  int64_t width_of(Value v) { return v >= kFirstMade ? program_.made(v).width : value(v).size(1); }
  // How much the tokens take of the expert that serves them all; undefined where they take it whole.
  at::Tensor always(const Operation& o) { return o.third >= 0 ? value(o.third) : at::Tensor(); }

  const Mixing& mixing(const Operation& o) {
    if (!mixing_) {
      const at::Tensor q = value(o.from), k = value(o.second);
      mixing_ = std::make_shared<Mixing>(
          Attending{std::get<AttentionSpec>(step_.part.words), weights_, step_.name, q, k, batch_, batch_,
                    o.fourth >= 0 ? value(o.fourth) : at::Tensor()},
          width_of(o.third));
    }
    return *mixing_;
  }

  // A value of the plain pass.
  at::Tensor value(Value v) {
    if (const auto it = known_.find(v); it != known_.end()) return it->second;
    return known_[v] = value(program_.made(v));
  }
  at::Tensor value(const Operation& o) {
    switch (o.kind) {
      case Operation::Kind::linear:
        return at::linear(value(o.from), map_of(o), bias_of(o));
      case Operation::Kind::activation:
        return apply_activation(value(o.from).clone(), o.activation);
      case Operation::Kind::multiply:
        return value(o.from) * value(o.second);
      case Operation::Kind::sum:
        return value(o.from) + value(o.second);
      case Operation::Kind::repeat:
        return repeat_chunks(value(o.from), o.groups, o.chunk);
      case Operation::Kind::convolve:
        return convolve(value(o.from), weights_.get(o.W), batch_);
      case Operation::Kind::gates:
        return delta_gates(value(o.from), value(o.second), weights_.get(o.W + "_rate"),
                           weights_.get(o.W + "_bias"));
      case Operation::Kind::norm:
        return apply_grouped_norm(value(o.from), o.norm, o.groups, weights_, o.W);
      case Operation::Kind::share:
        return shares_of(value(o.from), o.sharing, weights_);
      case Operation::Kind::experts:
        return run_experts(value(o.from), value(o.second), always(o), o, weights_, false);
      case Operation::Kind::beside:
        return set_beside(value(o.from), value(o.second), o.groups);
      case Operation::Kind::attend:
        return mixing(o).apply(value(o.third).unsqueeze(0)).squeeze(0).flatten(1);
    }
    throw Error("an operation that nobody freezes");
  }

  const Step& step_;
  const Program& program_;
  const Weights& weights_;
  const Batch& batch_;
  std::map<Value, at::Tensor> known_;
  std::shared_ptr<const Mixing> mixing_;
  std::vector<Link> links_;
};

}  // namespace

std::shared_ptr<const FrozenProgram> freeze_program(const at::Tensor& x, const Step& step,
                                                    const Program& program, const Weights& weights,
                                                    const Batch& batch, at::Tensor& written) {
  if (!step.reads.empty())
    throw Error(fmt::format("the branch {} reads the stream {}: networks of several streams are not frozen",
                            step.name, step.reads));
  Freezing freezing(x, step, program, weights, batch);
  const auto held = freezing.held(x.size(0));
  if (program.attend()) {
    written = held->apply(x.unsqueeze(0)).squeeze(0);
    if (const at::Tensor bias = held->bias(); bias.defined()) written = written.add_(bias);
  } else {
    written = freezing.plain();
  }
  return held;
}

}  // namespace rankscope
