#include "ops/attention_kernels.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/small_attention.h"
#include "kernels/cuda/train.h"
#include "ops/stream.h"

namespace rankscope {

using at::Tensor;

AttentionOperand attention_operand(Tensor x) {
  if (x.dim() == 2) x = x.unsqueeze(0);
  if (x.stride(2) != 1 && x.size(2) > 1) x = x.contiguous();
  return {x, {x.stride(0), x.stride(1)}};
}

namespace {

SmallAttention describe(const HeadShape& shape, const AttentionOperand& q, const AttentionOperand& k,
                        const AttentionOperand& v, Rows out, AttentionSizes sizes) {
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
void over_parts(const SmallAttention& a, Work work) {
  constexpr int64_t kPiece = 16;
  parallel_over((a.sequences + kPiece - 1) / kPiece, [&](int64_t piece) {
    SmallAttention part = a;
    part.sequences = std::min(kPiece, a.sequences - piece * kPiece);
    work(part, piece * kPiece);
  });
}

}  // namespace

void attention_forward_kernel(const HeadShape& shape, const AttentionOperand& q, const AttentionOperand& k,
                              const AttentionOperand& v, AttentionOperand& out, AttentionSizes sizes) {
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
    over_parts(a, [&](const SmallAttention& part, int64_t first) {
      const auto from = [&](const AttentionOperand& x, int64_t tokens) {
        return x.data.data_ptr<T>() + first * tokens * x.rows.row;
      };
      small_attention_forward<T>(part, from(q, a.queries), from(k, a.keys), from(v, a.keys),
                                 from(out, a.queries));
    });
  };
  q.data.scalar_type() == at::kDouble ? run(double{}) : run(float{});
}

void attention_backward_kernel(const HeadShape& shape, const AttentionOperand& q, const AttentionOperand& k,
                               const AttentionOperand& v, const AttentionOperand& dout, AttentionOperand& dq,
                               AttentionOperand& dk, AttentionOperand& dv, AttentionSizes sizes) {
  const SmallAttention a = describe(shape, q, k, v, dout.rows, sizes);
  if (q.data.is_cuda()) {
    in_pieces(a, [&](const SmallAttention& part, int64_t first) {
      const auto at = [&](const AttentionOperand& x) {
        return x.data.data_ptr<float>() + first * x.rows.trial;
      };
      cuda::small_attention_backward(part, at(q), at(k), at(v), at(dout), dout.rows, at(dq), dq.rows, at(dk),
                                     dk.rows, dv.data.defined() ? at(dv) : nullptr, dv.rows,
                                     current_stream(q.data));
    });
    return;
  }
  const auto run = [&](auto one) {
    using T = decltype(one);
    over_parts(a, [&](const SmallAttention& part, int64_t first) {
      const auto from = [&](const AttentionOperand& x, int64_t tokens) {
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

}  // namespace rankscope
