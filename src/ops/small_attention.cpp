#include "ops/small_attention.h"

#include <torch/library.h>

#include <limits>

#include "ops/attention_kernels.h"
#include "ops/checks.h"
#include "ops/function.h"
#include "ops/fused.h"

namespace rankscope {
namespace {

using at::Tensor;

struct Parts {
  AttentionOperand q, k, v;
};

Parts split(const Tensor& qkv, const HeadShape& shape) {
  const Tensor x = qkv.dim() == 2 ? qkv.unsqueeze(0) : qkv;
  return {attention_operand(x.narrow(2, 0, shape.width_qk)),
          attention_operand(x.narrow(2, shape.width_qk, shape.width_qk)),
          attention_operand(x.narrow(2, 2 * shape.width_qk, shape.width_v))};
}

int64_t out_width(const HeadShape& shape) {
  return shape.shared_values ? shape.heads.front() * shape.width_v : shape.width_v;
}

// The shape travels to the backward pass as an opaque pointer: autograd carries tensors and IValues only.
struct Saved : torch::CustomClassHolder {
  HeadShape shape;
  AttentionSizes sizes{};
};

c10::intrusive_ptr<Saved> saved(const HeadShape& shape, AttentionSizes sizes) {
  auto s = c10::make_intrusive<Saved>();
  s->shape = shape;
  s->sizes = sizes;
  return s;
}

class SelfAttention : public torch::autograd::Function<SelfAttention> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& qkv,
                        const c10::IValue& state) {
    const Saved& s = *static_cast<Saved*>(state.toCapsule().get());
    const int64_t trials = qkv.dim() == 2 ? 1 : qkv.size(0);
    const Tensor out = at::empty({trials, qkv.size(-2), s.shape.width_v}, qkv.options());
    self_attention_forward(qkv, s.sizes.keys, s.shape, out);
    context->save_for_backward({qkv});
    context->saved_data["state"] = state;
    return qkv.dim() == 2 ? out.squeeze(0) : out;
  }
  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const c10::IValue state = context->saved_data["state"];
    const Saved& s = *static_cast<Saved*>(state.toCapsule().get());
    const Tensor qkv = context->get_saved_variables()[0];
    const Tensor dqkv = at::empty(qkv.sizes(), qkv.options());
    self_attention_backward(qkv, gradients[0], s.sizes.keys, s.shape, dqkv);
    return {dqkv, Tensor()};
  }
};

class CrossAttention : public torch::autograd::Function<CrossAttention> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& q, const Tensor& k,
                        const Tensor& v, const c10::IValue& state) {
    const Saved& s = *static_cast<Saved*>(state.toCapsule().get());
    const AttentionOperand oq = attention_operand(q), ok = attention_operand(k), ov = attention_operand(v);
    Tensor out = at::empty({oq.data.size(0), oq.data.size(1), out_width(s.shape)}, q.options());
    AttentionOperand o = attention_operand(out);
    attention_forward_kernel(s.shape, oq, ok, ov, o, s.sizes);
    context->save_for_backward({q, k, v});
    context->saved_data["state"] = state;
    context->saved_data["dv"] = v.requires_grad();
    return q.dim() == 2 ? out.squeeze(0) : out;
  }
  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const c10::IValue state = context->saved_data["state"];
    const Saved& s = *static_cast<Saved*>(state.toCapsule().get());
    const Variables in = context->get_saved_variables();
    const Tensor dq = at::empty(in[0].sizes(), in[0].options()),
                 dk = at::empty(in[1].sizes(), in[1].options());
    const Tensor dv =
        context->saved_data["dv"].toBool() ? at::empty(in[2].sizes(), in[2].options()) : Tensor();
    AttentionOperand odq = attention_operand(dq), odk = attention_operand(dk),
                     odv = dv.defined() ? attention_operand(dv) : AttentionOperand{};
    attention_backward_kernel(s.shape, attention_operand(in[0]), attention_operand(in[1]),
                              attention_operand(in[2]), attention_operand(gradients[0]), odq, odk, odv,
                              s.sizes);
    return {dq, dk, dv, Tensor()};
  }
};

// One for the first largest score and zero for the others; NaN for all where one of them is.
Tensor choice(const Tensor& scores) {
  const Tensor chosen = at::zeros_like(scores).scatter_(3, scores.argmax(3, true), 1.0);
  return chosen.masked_fill_(scores.isnan().any(3, true), std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

void self_attention_forward(const Tensor& qkv, int64_t tokens, const HeadShape& shape, const Tensor& out) {
  const Parts p = split(qkv, shape);
  AttentionOperand o = attention_operand(out);
  attention_forward_kernel(shape, p.q, p.k, p.v, o, {tokens, tokens});
}

void self_attention_backward(const Tensor& qkv, const Tensor& dout, int64_t tokens, const HeadShape& shape,
                             const Tensor& dqkv) {
  const Parts p = split(qkv, shape);
  Parts d = split(dqkv, shape);
  attention_backward_kernel(shape, p.q, p.k, p.v, attention_operand(dout), d.q, d.k, d.v, {tokens, tokens});
}

Tensor small_attention_reference(const Tensor& q, const Tensor& k, const Tensor& v, int64_t queries,
                                 int64_t keys, const HeadShape& shape) {
  if (q.dim() == 2)
    return small_attention_reference(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), queries, keys, shape)
        .squeeze(0);
  std::vector<Tensor> out;
  for (int64_t t = 0; t < q.size(0); ++t) {
    const int64_t heads = shape.heads[static_cast<size_t>(t)];
    // [sequences, heads, tokens, width of a head]
    const auto split_heads = [&](const Tensor& x, int64_t tokens, int64_t count) {
      return x[t].reshape({x.size(1) / tokens, tokens, count, x.size(2) / count}).transpose(1, 2);
    };
    const Tensor scores =
        at::matmul(split_heads(q, queries, heads), split_heads(k, keys, heads).transpose(2, 3)) *
        shape.scale[static_cast<size_t>(t)];
    const Tensor pattern = shape.hard ? choice(scores) : at::softmax(scores, 3);
    const Tensor z = at::matmul(pattern, split_heads(v, keys, shape.shared_values ? 1 : heads));
    out.push_back(z.transpose(1, 2).reshape({q.size(1), heads * z.size(3)}));
  }
  return at::stack(out);
}

Tensor small_attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t queries, int64_t keys,
                       const HeadShape& shape) {
  if (!fused_for(q)) return small_attention_reference(q, k, v, queries, keys, shape);
  return CrossAttention::apply(q, k, v, c10::IValue::make_capsule(saved(shape, {queries, keys})));
}

Tensor small_self_attention(const Tensor& qkv, int64_t tokens, const HeadShape& shape) {
  if (!fused_for(qkv)) {
    const int64_t last = qkv.dim() - 1;
    return small_attention_reference(
        qkv.narrow(last, 0, shape.width_qk), qkv.narrow(last, shape.width_qk, shape.width_qk),
        qkv.narrow(last, 2 * shape.width_qk, shape.width_v), tokens, tokens, shape);
  }
  return SelfAttention::apply(qkv, c10::IValue::make_capsule(saved(shape, {tokens, tokens})));
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

Tensor call_small_attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t queries, int64_t keys,
                            at::IntArrayRef heads, at::ArrayRef<double> scale, bool hard,
                            bool shared_values) {
  require_floats(q, "q");
  require_alike(k, q, "k");
  require_alike(v, q, "v");
  require_sequences(q, queries, "q");
  require_sequences(k, keys, "k");
  require_sequences(v, keys, "v");
  require(q.dim() == k.dim() && q.dim() == v.dim() && trials_of(q) == trials_of(k) &&
              trials_of(q) == trials_of(v),
          "q, k and v must have the same trials");
  require(q.size(-1) == k.size(-1), "q and k must have the same width");
  require(k.size(-2) == v.size(-2) && q.size(-2) / queries == k.size(-2) / keys,
          "q, k and v must have the same number of sequences");
  return small_attention(q, k, v, queries, keys,
                         head_shape(q, heads, scale, q.size(-1), v.size(-1), hard, shared_values));
}

Tensor call_small_self_attention(const Tensor& qkv, int64_t tokens, at::IntArrayRef heads,
                                 at::ArrayRef<double> scale, int64_t width_v, bool hard) {
  require_floats(qkv, "qkv");
  require_sequences(qkv, tokens, "qkv");
  const int64_t width_qk = width_beside(width_v, qkv.size(-1), "columns");
  return small_self_attention(qkv, tokens, head_shape(qkv, heads, scale, width_qk, width_v, hard, false));
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def(
      "small_attention(Tensor q, Tensor k, Tensor v, int queries, int keys, int[] heads, float[] scale, "
      "bool hard=False, bool shared_values=False) -> Tensor",
      rankscope::call_small_attention);
  m.def(
      "small_self_attention(Tensor qkv, int tokens, int[] heads, float[] scale, int width_v, "
      "bool hard=False) -> Tensor",
      rankscope::call_small_self_attention);
}
