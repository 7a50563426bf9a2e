#include "attention/variant.h"
#include "base/error.h"

namespace rankscope {

const AttentionVariant& attention_variant(std::string_view name) {
  std::vector<std::string> known;
  for (const AttentionVariant* v : attention_variants()) {
    if (v->name == name) return *v;
    known.emplace_back(v->name);
  }
  throw unknown_name("attention variant", name, known);
}

bool only_tokens_decide(const AttentionSpec& spec) {
  return attention_variant(spec.variant).only_tokens && !spec.causal && spec.window == 0 &&
         !spec.qk_norm.acts() && spec.softcap == 0 && !spec.sinks && spec.buckets == 0 &&
         ((spec.rotary_frequencies.empty() && spec.alibi.empty()) || !spec.positions);
}

at::Tensor heads_first(const at::Tensor& x, int64_t heads) {
  const int64_t S = x.size(0), T = x.size(1), kv = x.size(2), d = x.size(3);
  at::Tensor y = x.permute({0, 2, 1, 3});
  if (kv != heads) y = y.unsqueeze(2).expand({S, kv, heads / kv, T, d});
  return y.reshape({S * heads, T, d}).contiguous();
}

at::Tensor masked_softmax(at::Tensor scores, const AttentionSpec& spec, int64_t first_row, at::Tensor* masked,
                          const at::Tensor& sinks) {
  const int64_t R = scores.size(-2), T = scores.size(-1);
  if (spec.causal || spec.window > 0) {
    const auto options = scores.options().dtype(at::kLong);
    const at::Tensor i = at::arange(first_row, first_row + R, options).unsqueeze(1);
    const at::Tensor j = at::arange(T, options).unsqueeze(0);
    at::Tensor hidden = spec.causal ? j > i : at::zeros({R, T}, options.dtype(at::kBool));
    if (spec.window > 0) hidden = hidden.logical_or((i - j).abs() >= spec.window);
    scores.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  }
  if (masked != nullptr) *masked = scores;
  if (!sinks.defined()) return at::softmax(scores, -1);
  std::vector<int64_t> column = scores.sizes().vec();
  column.back() = 1;
  const at::Tensor sink = sinks.to(scores.scalar_type()).view({-1, 1, 1}).expand(column);
  return at::softmax(at::cat({scores, sink}, -1), -1).narrow(-1, 0, T);
}

bool rows_sum_to_one(const AttentionSpec& spec) {
  return attention_variant(spec.variant).row_stochastic && !spec.sinks;
}

}  // namespace rankscope
