#include "parts/support/attention.h"

#include <cmath>

namespace rankscope {
namespace {

double root_of(double numerator, int64_t a, int64_t b) {
  return std::sqrt(numerator / (static_cast<double>(a) + static_cast<double>(b)));
}

// How torch starts the maps into heads: Glorot over the stacked projection of a module; where the values are
// the tokens themselves, over a head's own map.
double spread_in(const PartBuilder& b) {
  const AttentionSpec& a = b.attention();
  if (!a.value_map) return root_of(6, a.d_qk, b.width());
  return root_of(6, b.width(), a.heads / a.modules * (2 * a.d_qk + a.d_v));
}

}  // namespace

Value attended(PartBuilder& b, const std::function<Value(char, Value)>& changed, Value gates) {
  const AttentionSpec& a = b.attention();
  const double spread = spread_in(b);
  const auto map = [&](const char* letter, Value from, int64_t heads, int64_t d, bool kv, const char* site,
                       bool values = false) {
    const Value made = b.linear(letter, from, heads * d,
                                {.bias = a.bias && (letter[0] != 'K' || a.key_bias),
                                 .spread = spread,
                                 .carries_values = values,
                                 .head_axis = 0,
                                 .per_kv_head = kv,
                                 .site = site});
    return changed ? changed(letter[0], made) : made;
  };
  const auto normed = [&](const char* name, Value from, int64_t heads, bool kv) {
    const bool all = a.qk_norm_span == NormSpan::all;
    return b.norm(name, from, a.qk_norm, all ? 1 : heads, all || a.qk_norm_span == NormSpan::own_head, kv);
  };
  const Value q = map("Q", kInput, a.heads, a.d_qk, false, "hook_q");
  const Value k = map("K", kOther, a.kv_heads, a.d_qk, true, "hook_k");
  const Value v = a.value_map ? map("V", kOther, a.kv_heads, a.d_v, true, "hook_v", true) : kOther;
  if (a.sinks) b.parameter("sinks", {a.heads}, 0);
  if (a.buckets > 0) b.parameter("bucket_bias", {a.buckets, a.heads}, 1);
  return b.attend(normed("q_norm", q, a.heads, false), normed("k_norm", k, a.kv_heads, true), v, gates);
}

Value output_map(PartBuilder& b, Value z) {
  const AttentionSpec& a = b.attention();
  b.show(z, "hook_z", a.heads);  // what the output map reads
  const int64_t out = a.output_width > 0 ? a.output_width : b.width();
  const int64_t in = b.width_of(z) / a.modules;
  return b.linear("O", z, out,
                  {.bias = a.output_bias,
                   .spread = a.value_map ? 1 / std::sqrt(static_cast<double>(in)) : root_of(6, in, out),
                   .scale = 1.0 / static_cast<double>(a.modules),
                   .carries_values = true,
                   .head_axis = 1});
}

}  // namespace rankscope
