// Gated DeltaNet (Yang, Kautz and Hatamizadeh 2024) as Qwen3-Next has it: queries, keys and values each pass
// a short causal convolution and SiLU, the gated delta rule (attention/delta.cpp) writes them into a state
// and reads it, and what a head reads is normed and multiplied by SiLU(W_Z x).
//
//   q, k, v = silu(conv(W x))      write = sigmoid(W_write x)
//   z = norm(delta rule) silu(W_Z x)      keep = exp(-exp(keep_rate) softplus(W_keep x + keep_bias))
//
// Here it is the queries and keys that several heads share, not keys and values: there are `kv_heads` of
// both, and `heads` of everything else.
#include <cmath>

#include "base/error.h"
#include "parts/support/attention.h"

namespace rankscope {
namespace {

void build_gated_delta_attention(PartBuilder& b) {
  const AttentionSpec& a = b.attention();
  if (a.qk_norm.there() || !a.value_map || a.sinks || a.buckets > 0)
    throw usage_error("a gated delta rule norms its queries and keys itself, and has values and no sinks");
  const double spread = 1 / std::sqrt(static_cast<double>(b.width()));
  const auto taps = static_cast<int64_t>(b.option("kernel"));
  const auto map = [&](std::string_view letter, int64_t out, bool kv, bool bias, bool values = false) {
    return b.linear(letter, kInput, out,
                    {.bias = bias,
                     .spread = spread,
                     .bias_spread = spread,
                     .carries_values = values,
                     .head_axis = 0,
                     .per_kv_head = kv});
  };
  const auto convolved = [&](std::string_view name, Value from, bool kv) {
    return b.activation(b.convolve(name, from, taps, kv), Activation::silu);
  };
  Value q = convolved("conv_Q", map("Q", a.kv_heads * a.d_qk, true, a.bias), true);
  const Value k = convolved("conv_K", map("K", a.kv_heads * a.d_qk, true, a.bias && a.key_bias), true);
  const Value v = convolved("conv_V", map("V", a.heads * a.d_v, false, a.bias, true), false);
  if (a.heads != a.kv_heads) q = b.repeat(q, a.heads / a.kv_heads, a.d_qk);
  b.show(q, "hook_q", a.heads);
  b.show(k, "hook_k", a.kv_heads);
  b.show(v, "hook_v", a.heads);
  const Value gates =
      b.gates("keep", map("write", a.heads, false, false), map("keep", a.heads, false, false), "hook_gate");
  NormSpec norm = b.branch_norm();  // of the same kind of network: one epsilon for all
  if (!norm.there()) norm.epsilon = 1e-6;
  norm.kind = NormKind::rms;
  norm.gain = true;
  const Value normed = b.norm("z_norm", b.attend(q, k, v, gates), norm, a.heads);
  const Value gate = b.activation(map("Z", a.heads * a.d_v, false, false), Activation::silu);
  b.show(gate, "hook_output_gate", a.heads);
  output_map(b, b.multiply(normed, gate));
}

}  // namespace

extern const Part part_gated_delta_attention{
    .name = "gated_delta_attention",
    .summary = "Qwen3-Next: a delta rule behind short convolutions, normed and gated (Gated DeltaNet)",
    .kind = Part::Kind::attention,
    .options = {{"kernel", 4, 1, 256, "how many tokens a convolution reads, the token's own included"}},
    .sites = {{"attn.hook_gate", "how much each token writes, and how much of the state is kept"},
              {"attn.hook_output_gate", "what multiplies the heads' normed output"}},
    .variant = "delta",
    .build = build_gated_delta_attention};

}  // namespace rankscope
