// The delta rule (attention/delta.cpp): how much a token writes into each head's state, and with `forget` how
// much of it is kept, are sigmoids of the token.
#include <cmath>

#include "parts/support/attention.h"

namespace rankscope {
namespace {

void build_delta_attention(PartBuilder& b) {
  const AttentionSpec& a = b.attention();
  const double spread = 1 / std::sqrt(static_cast<double>(b.width()));
  const int64_t each = b.option("forget") != 0 ? 2 : 1;
  const Value scores = b.linear("G", kOther, a.kv_heads * each,
                                {.bias = true, .spread = spread, .head_axis = 0, .per_kv_head = true});
  const Value gates = b.activation(scores, Activation::sigmoid, "hook_gate");
  output_map(b, attended(b, {}, a.heads == a.kv_heads ? gates : b.repeat(gates, a.heads / a.kv_heads, each)));
}

}  // namespace

extern const Part part_delta_attention{
    .name = "delta_attention",
    .summary =
        "a state that writes what differs from what it holds for a key (DeltaNet; with forget=1 gated)",
    .kind = Part::Kind::attention,
    .options = {{"forget", 0, 0, 1, "whether the state is kept only in part, token by token"}},
    .sites = {{"attn.hook_gate", "how much each token writes, and how much of the state is kept"}},
    .variant = "delta",
    .build = build_delta_attention};

}  // namespace rankscope
