// Attention with a gate (Qiu et al. 2025): something on its way is multiplied by sigmoid(W_G x). A head can
// then write nothing where it has nothing to say, without having to rest on a sink. (A gate that is added, to
// compare with, cannot do that.) Their five places:
//
//   1  what the heads carry, before the output map     4  the queries
//   2  the values                                      5  what the output map wrote
//   3  the keys
#include <cmath>

#include "parts/support/attention.h"

namespace rankscope {
namespace {

// `carried` with its gate, which reads `x`; `heads` equal parts of it may share a number each, or one gate.
Value gated(PartBuilder& b, Value carried, Value x, int64_t heads, int head_axis, bool kv) {
  const double spread = 1 / std::sqrt(static_cast<double>(b.width()));
  const int64_t width = b.width_of(carried), each = heads > 0 ? width / heads : width;
  const bool by_head = b.option("by_head") != 0 && heads > 0, shared = b.option("shared") != 0 && heads > 0;
  const Value scores = b.linear("G", x, (by_head ? 1 : each) * (shared || heads == 0 ? 1 : heads),
                                {.bias = b.option("bias") != 0,
                                 .spread = spread,
                                 .bias_spread = spread,
                                 .head_axis = shared ? -1 : head_axis,
                                 .per_kv_head = kv});
  const Activation kind = b.option("silu") != 0 ? Activation::silu : Activation::sigmoid;
  Value gate = b.activation(scores, kind);
  b.show(gate, "hook_gate", shared ? 0 : heads);
  if (by_head) gate = b.repeat(gate, each);
  if (shared) gate = b.repeat(gate, heads, each);
  return b.option("additive") != 0 ? b.sum(carried, gate) : b.multiply(carried, gate);
}

void build_gated_attention(PartBuilder& b) {
  const AttentionSpec& a = b.attention();
  const auto place = static_cast<int>(b.option("place"));
  const auto on_projection = [&](char letter, Value v) {
    if (letter == 'V' && place == 2) return gated(b, v, kOther, a.kv_heads, 0, true);
    if (letter == 'K' && place == 3) return gated(b, v, kOther, a.kv_heads, 0, true);
    if (letter == 'Q' && place == 4) return gated(b, v, kInput, a.heads, 0, false);
    return v;
  };
  const Value z = attended(b, on_projection);
  const Value out = output_map(b, place == 1 ? gated(b, z, kInput, a.heads, 0, false) : z);
  if (place == 5) gated(b, out, kInput, 0, -1, false);
}

}  // namespace

extern const Part part_gated_attention{
    .name = "gated_attention",
    .summary = "attention with a gate, sigmoid(W_G x) times what the heads carry (or at another place)",
    .kind = Part::Kind::attention,
    .options = {{"bias", 1, 0, 1, "whether the gate has a bias"},
                {"place", 1, 1, 5, "what is gated: heads' output, values, keys, queries, what W_O wrote"},
                {"by_head", 0, 0, 1, "one number a head instead of one a channel (not at place 5)"},
                {"shared", 0, 0, 1, "one gate for all heads (not at place 5)"},
                {"silu", 0, 0, 1, "SiLU instead of the sigmoid"},
                {"additive", 0, 0, 1, "the gate is added instead of multiplied"}},
    .sites = {{"attn.hook_gate", "what multiplies the heads' output, from 0 to 1, or is added to it"}},
    .heads_are_a_reshape = true,
    .build = build_gated_attention};

}  // namespace rankscope
