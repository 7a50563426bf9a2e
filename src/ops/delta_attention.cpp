#include "ops/delta_attention.h"

#include <c10/core/GradMode.h>
#include <torch/library.h>

#include "kernels/cpu/running_attention.h"
#include "kernels/cuda/running_attention.h"
#include "ops/checks.h"
#include "ops/chunks.h"
#include "ops/function.h"
#include "ops/fused.h"
#include "ops/sequences.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;

template <class T>
DeltaInputs<T> inputs(const Variables& in, int64_t b) {
  return {of_sequence<T>(in[0], b), of_sequence<T>(in[1], b), of_sequence<T>(in[2], b),
          of_sequence<T>(in[3], b), of_sequence<T>(in[4], b)};
}

template <class T>
DeltaGradients<T> gradients_in(const Variables& d, int64_t b) {
  return {of_sequence<T>(d[0], b), of_sequence<T>(d[1], b), of_sequence<T>(d[2], b), of_sequence<T>(d[3], b),
          of_sequence<T>(d[4], b)};
}

// LibTorch 1.13 takes no undefined tensors here: an absent keep is a vector of no elements.
class DeltaAttentionFunction : public torch::autograd::Function<DeltaAttentionFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& q, const Tensor& k,
                        const Tensor& v, const Tensor& write, const Tensor& keep, bool wanted) {
    const Variables in{q.contiguous(), k.contiguous(), v.contiguous(), write.contiguous(), keep.contiguous()};
    const DeltaAttention shape{q.size(1), q.size(2), v.size(2)};
    const Tensor out = at::empty(v.sizes(), v.options());
    if (q.is_cuda()) {
      const Tensor saved = at::empty({cuda::delta_attention_saved(shape, q.size(0))}, q.options());
      cuda::delta_attention_forward(shape, q.size(0), tf32_allowed(), inputs<float>(in, 0),
                                    out.data_ptr<float>(), saved.data_ptr<float>(), current_stream(q));
      context->save_for_backward({in[0], in[1], in[2], in[3], in[4], saved});
      return out;
    }
    const Tensor states = at::empty(
        {wanted ? q.size(0) : 0, running_chunks(shape.tokens), shape.width_qk, shape.width_v}, q.options());
    over_sequences(q, [&]<class T>(T, int64_t b) {
      delta_attention_forward<T>(shape, inputs<T>(in, b), of_sequence<T>(out, b), of_sequence<T>(states, b));
    });
    context->save_for_backward({in[0], in[1], in[2], in[3], in[4], states});
    return out;
  }

  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const Variables in = context->get_saved_variables();
    const Tensor &states = in[5], dout = gradients[0].contiguous();
    const DeltaAttention shape{in[0].size(1), in[0].size(2), in[2].size(2)};
    Variables d;
    for (size_t i = 0; i < 5; ++i) d.push_back(at::empty_like(in[i]));
    if (dout.is_cuda()) {
      const int64_t sequences = in[0].size(0);
      const Tensor work = at::empty({cuda::delta_attention_workspace(shape, sequences)}, dout.options());
      cuda::delta_attention_backward(shape, sequences, tf32_allowed(), inputs<float>(in, 0),
                                     in[5].data_ptr<float>(), dout.data_ptr<float>(),
                                     gradients_in<float>(d, 0), work.data_ptr<float>(), current_stream(dout));
      d.emplace_back();
      return d;
    }
    over_sequences(in[0], [&]<class T>(T, int64_t b) {
      delta_attention_backward<T>(shape, inputs<T>(in, b), of_sequence<T>(states, b), of_sequence<T>(dout, b),
                                  gradients_in<T>(d, b));
    });
    d.emplace_back();
    return d;
  }
};

}  // namespace

Tensor delta_attention_reference(const Tensor& q_, const Tensor& k_, const Tensor& v_, const Tensor& write_,
                                 const Tensor& keep) {
  const int64_t T = q_.size(1);
  if (T == 0) return v_.clone();
  const Tensor q = in_chunks(q_), k = in_chunks(k_), v = in_chunks(v_),
               write = in_chunks(write_).unsqueeze(3);
  const KeptInChunks kept(keep);
  const Tensor read = KeptInChunks::times(at::matmul(q, k.transpose(2, 3)), kept.G).tril();
  const Tensor same = KeptInChunks::times(at::matmul(k, k.transpose(2, 3)), kept.G);
  const Tensor eye = at::eye(q.size(2), q.options()).expand_as(same);
  const Tensor inverse =
      at::linalg_solve_triangular(eye + (write * same).tril(-1), eye, /*upper=*/false, /*left=*/true,
                                  /*unitriangular=*/true);
  const auto each = [&](const Tensor& x) { return of_each_chunk(x, q.size(1)); };
  const auto own = each(at::matmul(inverse, write * v));  // U of no state
  const auto seen = each(at::matmul(inverse, KeptInChunks::times(write * k, kept.before)));
  const auto asked = each(KeptInChunks::times(q, kept.before)),
             stored = each(KeptInChunks::times(k, kept.to_end)), reads = each(read), whole = each(kept.whole);
  std::vector<Tensor> out;
  Tensor state = at::zeros({q.size(0), k.size(3), v.size(3)}, q.options());
  for (size_t c = 0; c < own.size(); ++c) {
    const Tensor u = own[c] - at::matmul(seen[c], state);
    out.push_back(at::matmul(reads[c], u) + at::matmul(asked[c], state));
    state = KeptInChunks::times(state, whole[c]) + at::matmul(stored[c].transpose(1, 2), u);
  }
  return out_of_chunks(at::stack(out, 1), T);
}

Tensor delta_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& write,
                       const Tensor& keep) {
  if (!fused_for(q) || (q.is_cuda() && !cuda::running_attention_takes(q.size(2))))
    return delta_attention_reference(q, k, v, write, keep);
  const Tensor kept = keep.defined() ? keep : at::empty({0}, q.options());
  bool wanted = false;
  for (const Tensor* x : {&q, &k, &v, &write, &kept}) wanted = wanted || x->requires_grad();
  return DeltaAttentionFunction::apply(q, k, v, write, kept, wanted && at::GradMode::is_enabled());
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

Tensor call_delta_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& write,
                            const MaybeTensor& keep) {
  require_running(q, k, v);
  require_each_token(write, q, "write");
  if (keep.has_value()) require_each_token(*keep, q, "keep");
  return delta_attention(q, k, v, write, or_none(keep));
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def("delta_attention(Tensor q, Tensor k, Tensor v, Tensor write, Tensor? keep=None) -> Tensor",
        rankscope::call_delta_attention);
}
