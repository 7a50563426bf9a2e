// Phi-3 and Phi-4: Llama's block with fused projections, and rotations that change with the length of the
// text.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

ModelSpec phi3_spec(const JsonObject& config) {
  ModelSpec s = rotary_decoder(config, "phi3");
  s.final_norm = rms_of(config, 1e-5);
  AttentionSpec attention = grouped_attention(config, s.width);
  set_rotation(attention, config, attention.d_qk, {}, {.partial = true});
  attention.window = window_of(config, 0);
  MlpSpec mlp = gated_mlp_of(config);
  mlp.bias = false;
  repeat_block(s, classic_block(NormPlace::pre, s.final_norm, attention, "gated_mlp", mlp), depth_of(config));
  add_linear_head(s, config, false);
  return s;
}

WeightMap phi3_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"embed_tokens.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const BlockSpec& block = s.blocks[static_cast<size_t>(i)];
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    list.norm(b + "ln1", layer + "input_layernorm");
    stacked_qkv(list, b, layer + "self_attn.qkv_proj", block.attention());
    list.linear(b + "attn.", "O", layer + "self_attn.o_proj");
    list.norm(b + "ln2", layer + "post_attention_layernorm");
    const int64_t hidden = block.mlp_branch()->mlp()->width;
    list.linear(b + "mlp.", "gate", layer + "mlp.gate_up_proj", {.stored_rows = 2 * hidden});
    list.linear(b + "mlp.", "in", layer + "mlp.gate_up_proj",
                {.first_row = hidden, .stored_rows = 2 * hidden});
    list.linear(b + "mlp.", "out", layer + "mlp.down_proj");
  }
  list.norm("ln_final", "norm");
  list.vocabulary(s, "embed_tokens.weight", "lm_head.weight");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_phi3{.name = "phi3",
                                    .summary = "Phi-3, Phi-4: Llama's block with fused projections, longrope",
                                    .model_types = {"phi3"},
                                    .prefix = "model.",
                                    .anchor = "embed_tokens.weight",
                                    .spec = phi3_spec,
                                    .weights = phi3_weights};

}  // namespace rankscope
