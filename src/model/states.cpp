#include "model/states.h"

#include <ATen/ATen.h>

namespace rankscope {

bool keeps_state(const AttentionSpec& spec) {
  const std::string_view kind = attention_variant(spec.variant).name;
  if (spec.window > 0 || spec.scale == 0) return false;
  return kind == "linear" || (spec.causal && (kind == "decay" || kind == "delta"));
}

std::vector<int64_t> state_tokens(bool causal, int64_t length) {
  std::vector<int64_t> after;
  for (int64_t n = 2; causal && n < length && n <= kLastDoubling; n *= 2) after.push_back(n);
  after.push_back(length);
  return after;
}

// Behind each of those tokens stand as many as a key is wide, at the same place, that write nothing (their
// keys and values are zero, and everything is kept) and whose queries ask for one direction each.
at::Tensor states_of(const AttentionInput& in, const at::Tensor& v) {
  const AttentionSpec& a = in.spec;
  const int64_t S = in.q.size(0), T = in.q.size(1), d = a.d_qk;
  const bool gated = in.gates != nullptr && in.gates->defined();
  const at::Tensor ask = at::eye(d, in.q.options()).view({1, d, 1, d}).expand({S, d, a.heads, d});
  const at::Tensor no_key = at::zeros({S, d, in.k.size(2), d}, in.k.options());
  const at::Tensor no_value = at::zeros({v.size(0), d, v.size(2)}, v.options());
  at::Tensor keep_all;  // writes nothing: the first number of a key is how much it writes
  if (gated) {
    keep_all = at::ones({S, d, in.gates->size(2), in.gates->size(3)}, in.gates->options());
    keep_all.select(3, 0).zero_();
  }
  const std::vector<int64_t> after = state_tokens(a.causal, T);
  std::vector<at::Tensor> q, k, values, places, gates;
  int64_t from = 0;
  for (const int64_t to : after) {
    const auto tokens = [&](const at::Tensor& x) { return x.narrow(1, from, to - from); };
    q.insert(q.end(), {tokens(in.q), ask});
    k.insert(k.end(), {tokens(in.k), no_key});
    values.insert(values.end(), {tokens(v), no_value});
    places.insert(places.end(), {tokens(in.positions), in.positions.narrow(1, to - 1, 1).expand({S, d})});
    if (gated) gates.insert(gates.end(), {tokens(*in.gates), keep_all});
    from = to;
  }
  const at::Tensor all_q = at::cat(q, 1), all_k = at::cat(k, 1), all_places = at::cat(places, 1), no_types,
                   all_gates = gated ? at::cat(gates, 1) : at::Tensor();
  const at::Tensor read = attention_variant(a.variant).output(
      {a, in.weights, in.name, all_q, all_k, all_places, all_places, no_types, &all_gates},
      at::cat(values, 1));
  std::vector<at::Tensor> states;
  for (size_t i = 0; i < after.size(); ++i)
    states.push_back(read.narrow(1, after[i] + static_cast<int64_t>(i) * d, d));
  return (at::cat(states, 1) / a.scale).view({S, a.heads, static_cast<int64_t>(after.size()) * d, v.size(2)});
}

}  // namespace rankscope
