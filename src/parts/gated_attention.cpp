// Attention with an output gate (Qiu et al. 2025, their G1): what the heads carry is multiplied by
// sigmoid(W_G x), number by number, before the output map. A head can then write nothing where it has nothing
// to say, without having to rest on a sink.
#include <cmath>

#include "parts/support/attention.h"

namespace rankscope {
namespace {

void build(PartBuilder& b) {
  const Value z = attended(b);
  const double spread = 1 / std::sqrt(static_cast<double>(b.width()));
  const Value scores =
      b.linear("G", kInput, b.width_of(z),
               {.bias = b.option("bias") != 0, .spread = spread, .bias_spread = spread, .head_axis = 0});
  output_map(b, b.multiply(z, b.activation(scores, Activation::sigmoid, "hook_gate")));
}

}  // namespace

extern const Part part_gated_attention{
    .name = "gated_attention",
    .summary = "attention whose heads' output is multiplied by sigmoid(W_G x) before the output map",
    .kind = Part::Kind::attention,
    .options = {{"bias", 1, 0, 1, "whether the gate has a bias"}},
    .sites = {{"attn.hook_gate", "what multiplies the heads' output, from 0 to 1"}},
    .heads_are_a_reshape = true,
    .build = build};

}  // namespace rankscope
