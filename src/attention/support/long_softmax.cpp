#include "attention/support/long_softmax.h"

#include <ATen/ATen.h>

#include <limits>

#include "attention/support/scores.h"

namespace rankscope {
namespace {

// Built again from the words that are known here, and compared as a whole: what is not known is not ours.
bool is_known(const AttentionSpec& a) {
  AttentionSpec known;
  known.heads = a.heads, known.kv_heads = a.kv_heads, known.d_qk = a.d_qk, known.d_v = a.d_v;
  known.scale = a.scale, known.causal = a.causal, known.window = a.window, known.sinks = a.sinks;
  // Turned before scores are made.
  known.positions = a.positions, known.rotary_frequencies = a.rotary_frequencies;
  known.rotary_adjacent = a.rotary_adjacent, known.rotary_scale = a.rotary_scale;
  known.rotary_context = a.rotary_context, known.rotary_long = a.rotary_long;
  known.rotary_growth = a.rotary_growth;
  // What happens before queries, keys and values are there, and after the heads are.
  known.modules = a.modules, known.qk_norm = a.qk_norm, known.qk_norm_span = a.qk_norm_span;
  known.bias = a.bias, known.key_bias = a.key_bias, known.output_bias = a.output_bias;
  known.value_map = a.value_map, known.output_width = a.output_width;
  known.heads_off = a.heads_off, known.heads_fixed = a.heads_fixed, known.fixed_values = a.fixed_values;
  known.truncate_qk = a.truncate_qk, known.truncate_ov = a.truncate_ov;
  return known == a;
}

LongMask mask_of(const AttentionSpec& a) { return {a.scale, a.causal, a.window}; }

}  // namespace

std::unique_ptr<LongSoftmax> LongSoftmax::prepare(const AttentionInput& in, const at::Tensor& v) {
  if (!is_known(in.spec)) return nullptr;
  const at::Tensor sinks = in.spec.sinks ? in.weights.get(in.name + ".sinks") : at::Tensor();
  if (!long_attention_takes({in.q, in.k, v, sinks}, mask_of(in.spec))) return nullptr;
  const TurnedHeads turned = turned_heads(in);
  return std::unique_ptr<LongSoftmax>(new LongSoftmax(in.spec, {turned.q, turned.k, v, sinks}));
}

LongStatistics LongSoftmax::run(bool statistics, const at::Tensor& out) const {
  return long_attention(x_, mask_of(spec_), statistics, out);
}

// Head by head: what is made on the way stays small.
at::Tensor LongSoftmax::rows(int64_t first, int64_t count, int64_t first_head, int64_t heads,
                             const at::Tensor& index, Of what) const {
  const int64_t T = x_.k.size(1), share = spec_.heads / spec_.kv_heads;
  const at::Tensor hidden = hidden_keys(spec_, index, T);
  at::Tensor out = at::empty({count, heads, index.size(0), T}, x_.q.options());
  for (int64_t h = first_head; h < first_head + heads; ++h) {
    const at::Tensor q = x_.q.narrow(0, first, count).select(2, h).index_select(1, index) * spec_.scale,
                     k = x_.k.narrow(0, first, count).select(2, h / share);
    at::Tensor made = at::matmul(q, k.transpose(1, 2)).unsqueeze(1);  // [count, 1, n, T']
    if (what == Of::scores && hidden.defined())
      made.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
    if (what == Of::pattern)
      made = softmax_seen(std::move(made), hidden, nullptr,
                          x_.sinks.defined() ? x_.sinks.narrow(0, h, 1) : at::Tensor());
    out.narrow(1, h - first_head, 1).copy_(made);
  }
  return out;
}

}  // namespace rankscope
