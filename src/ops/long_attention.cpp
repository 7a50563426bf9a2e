#include "ops/long_attention.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "kernels/cpu/long_attention.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cuda/long_attention.h"
#include "ops/fused.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;

LongAttention shape_of(const LongTensors& x, const LongMask& mask) {
  return {x.q.size(0), x.q.size(1), x.k.size(1),
          x.q.size(2), x.k.size(2), x.v.size(2),
          x.q.size(3), x.v.size(3), static_cast<float>(mask.scale),
          mask.causal, mask.window};
}

// [S, T', KV, d] to [S, KV, T', d]: the keys of a head lie one behind another.
Tensor by_head(const Tensor& x) { return aligned(x.detach().transpose(1, 2).contiguous()); }

}  // namespace

bool long_attention_takes(const LongTensors& x, const LongMask& mask) {
  const LongAttention a = shape_of(x, mask);
  const bool differentiated =
      at::GradMode::is_enabled() && (x.q.requires_grad() || x.k.requires_grad() || x.v.requires_grad());
  if (x.q.scalar_type() != at::kFloat || !fused_for(x.q) || differentiated || x.q.numel() == 0) return false;
  if (a.keys == 0 || a.heads % a.key_heads != 0 || a.heads % a.value_heads != 0) return false;
  if ((mask.causal || mask.window > 0) && a.queries != a.keys) return false;
  return !x.q.is_cuda() || cuda::long_attention_takes(a);
}

LongStatistics long_attention(const LongTensors& x, const LongMask& mask, bool statistics,
                              const Tensor& out) {
  const LongAttention a = shape_of(x, mask);
  const Tensor q = aligned(x.q.detach().contiguous()), k = by_head(x.k), v = by_head(x.v),
               sinks = x.sinks.defined() ? x.sinks.detach().to(q.options()).contiguous() : Tensor();
  const auto wide = q.options().dtype(at::kDouble);
  LongStatistics found{at::empty({a.samples, a.heads, a.queries}, wide), {}, {}};
  if (statistics) {
    found.entropy = at::empty_like(found.mass);
    found.received = at::empty({a.samples, a.heads, long_segments(a), a.keys}, wide);
  }
  const LongOperands in{q.data_ptr<float>(), k.data_ptr<float>(), v.data_ptr<float>(),
                        sinks.defined() ? sinks.data_ptr<float>() : nullptr};
  const LongResults to{out.data_ptr<float>(), found.mass.data_ptr<double>(),
                       statistics ? found.entropy.data_ptr<double>() : nullptr,
                       statistics ? found.received.data_ptr<double>() : nullptr};
  if (q.is_cuda()) {
    const Tensor rows = at::empty({a.samples, a.heads, a.queries, 2}, q.options());
    cuda::long_attention(a, in, to, rows.data_ptr<float>(), current_stream(q));
  } else {
    const int64_t segments = long_segments(a);
    parallel_over(a.samples * a.heads * segments, [&](int64_t i) {
      long_attention(a, in, to, i / segments / a.heads, i / segments % a.heads, i % segments);
    });
  }
  if (statistics) found.received = found.received.sum(2);
  return found;
}

}  // namespace rankscope
