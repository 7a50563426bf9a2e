#include "ops/small_attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/small_attention.h"
#include "kernels/cuda/train.h"
#include "ops/fused.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;
using Variables = torch::autograd::variable_list;

// One operand with its strides; rows must be dense inside.
struct Operand {
  Tensor data;  // [trials, rows, columns]
  Rows rows;
};

Operand operand(Tensor x) {
  if (x.dim() == 2) x = x.unsqueeze(0);
  if (x.stride(2) != 1 && x.size(2) > 1) x = x.contiguous();
  return {x, {x.stride(0), x.stride(1)}};
}

struct Sizes {
  int64_t queries, keys;
};

SmallAttention describe(const HeadShape& shape, const Operand& q, const Operand& k, const Operand& v,
                        Rows out, Sizes sizes) {
  SmallAttention a;
  a.trials = q.data.size(0);
  a.sequences = sizes.queries == 0 ? 0 : q.data.size(1) / sizes.queries;
  a.queries = sizes.queries;
  a.keys = sizes.keys;
  a.width_qk = shape.width_qk;
  a.width_v = shape.width_v;
  a.heads = shape.heads.data();
  a.scale = shape.scale.data();
  a.hard = shape.hard;
  a.shared_values = shape.shared_values;
  a.q = q.rows;
  a.k = k.rows;
  a.v = v.rows;
  a.out = out;
  return a;
}

int64_t out_width(const HeadShape& shape) {
  return shape.shared_values ? shape.heads.front() * shape.width_v : shape.width_v;
}

// At most kMaxTrials trials go into one launch.
template <class Launch>
void in_pieces(SmallAttention a, Launch launch) {
  const int64_t trials = a.trials;
  for (int64_t first = 0; first < trials; first += cuda::kMaxTrials) {
    SmallAttention part = a;
    part.trials = std::min(cuda::kMaxTrials, trials - first);
    part.heads = a.heads + first;
    part.scale = a.scale + first;
    launch(part, first);
  }
}

// On the CPU pieces of the sequences go over the threads; inside a parallel region this is a plain loop.
template <class Work>
void over_sequences(const SmallAttention& a, Work work) {
  constexpr int64_t kPiece = 16;
  parallel_over((a.sequences + kPiece - 1) / kPiece, [&](int64_t piece) {
    SmallAttention part = a;
    part.sequences = std::min(kPiece, a.sequences - piece * kPiece);
    work(part, piece * kPiece);
  });
}

void forward_kernel(const HeadShape& shape, const Operand& q, const Operand& k, const Operand& v,
                    Operand& out, Sizes sizes) {
  const SmallAttention a = describe(shape, q, k, v, out.rows, sizes);
  if (q.data.is_cuda()) {
    in_pieces(a, [&](const SmallAttention& part, int64_t first) {
      cuda::small_attention_forward(
          part, q.data.data_ptr<float>() + first * q.rows.trial,
          k.data.data_ptr<float>() + first * k.rows.trial, v.data.data_ptr<float>() + first * v.rows.trial,
          out.data.data_ptr<float>() + first * out.rows.trial, current_stream(q.data));
    });
    return;
  }
  const auto run = [&](auto one) {
    using T = decltype(one);
    over_sequences(a, [&](const SmallAttention& part, int64_t first) {
      const auto from = [&](const Operand& x, int64_t tokens) {
        return x.data.data_ptr<T>() + first * tokens * x.rows.row;
      };
      small_attention_forward<T>(part, from(q, a.queries), from(k, a.keys), from(v, a.keys),
                                 from(out, a.queries));
    });
  };
  q.data.scalar_type() == at::kDouble ? run(double{}) : run(float{});
}

void backward_kernel(const HeadShape& shape, const Operand& q, const Operand& k, const Operand& v,
                     const Operand& dout, Operand& dq, Operand& dk, Operand& dv, Sizes sizes) {
  const SmallAttention a = describe(shape, q, k, v, dout.rows, sizes);
  if (q.data.is_cuda()) {
    in_pieces(a, [&](const SmallAttention& part, int64_t first) {
      const auto at = [&](const Operand& x) { return x.data.data_ptr<float>() + first * x.rows.trial; };
      cuda::small_attention_backward(part, at(q), at(k), at(v), at(dout), dout.rows, at(dq), dq.rows, at(dk),
                                     dk.rows, dv.data.defined() ? at(dv) : nullptr, dv.rows,
                                     current_stream(q.data));
    });
    return;
  }
  const auto run = [&](auto one) {
    using T = decltype(one);
    over_sequences(a, [&](const SmallAttention& part, int64_t first) {
      const auto from = [&](const Operand& x, int64_t tokens) {
        return x.data.data_ptr<T>() + first * tokens * x.rows.row;
      };
      small_attention_backward<T>(part, from(q, a.queries), from(k, a.keys), from(v, a.keys),
                                  from(dout, a.queries), dout.rows, from(dq, a.queries), dq.rows,
                                  from(dk, a.keys), dk.rows, dv.data.defined() ? from(dv, a.keys) : nullptr,
                                  dv.rows);
    });
  };
  q.data.scalar_type() == at::kDouble ? run(double{}) : run(float{});
}

struct Parts {
  Operand q, k, v;
};

Parts split(const Tensor& qkv, const HeadShape& shape) {
  const Tensor x = qkv.dim() == 2 ? qkv.unsqueeze(0) : qkv;
  return {operand(x.narrow(2, 0, shape.width_qk)), operand(x.narrow(2, shape.width_qk, shape.width_qk)),
          operand(x.narrow(2, 2 * shape.width_qk, shape.width_v))};
}

// The shape travels to the backward pass as an opaque pointer: autograd carries tensors and IValues only.
struct Saved : torch::CustomClassHolder {
  HeadShape shape;
  Sizes sizes{};
};

c10::intrusive_ptr<Saved> saved(const HeadShape& shape, Sizes sizes) {
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
    const Operand oq = operand(q), ok = operand(k), ov = operand(v);
    Tensor out = at::empty({oq.data.size(0), oq.data.size(1), out_width(s.shape)}, q.options());
    Operand o = operand(out);
    forward_kernel(s.shape, oq, ok, ov, o, s.sizes);
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
    Operand odq = operand(dq), odk = operand(dk), odv = dv.defined() ? operand(dv) : Operand{};
    backward_kernel(s.shape, operand(in[0]), operand(in[1]), operand(in[2]), operand(gradients[0]), odq, odk,
                    odv, s.sizes);
    return {dq, dk, dv, Tensor()};
  }
};

}  // namespace

void self_attention_forward(const Tensor& qkv, int64_t tokens, const HeadShape& shape, const Tensor& out) {
  const Parts p = split(qkv, shape);
  Operand o = operand(out);
  forward_kernel(shape, p.q, p.k, p.v, o, {tokens, tokens});
}

void self_attention_backward(const Tensor& qkv, const Tensor& dout, int64_t tokens, const HeadShape& shape,
                             const Tensor& dqkv) {
  const Parts p = split(qkv, shape);
  Parts d = split(dqkv, shape);
  backward_kernel(shape, p.q, p.k, p.v, operand(dout), d.q, d.k, d.v, {tokens, tokens});
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
    const Tensor pattern =
        shape.hard ? at::zeros_like(scores).scatter_(3, scores.argmax(3, true), 1.0) : at::softmax(scores, 3);
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

}  // namespace rankscope
