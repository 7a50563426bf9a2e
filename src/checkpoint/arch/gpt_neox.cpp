// GPT-NeoX and Pythia: attention and MLP side by side, each with a norm of its own, and rotary positions on a
// part of the channels. Queries, keys and values lie head by head in one tensor.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

ModelSpec gpt_neox_spec(const JsonObject& config) {
  ModelSpec s = rotary_decoder(config, "gpt_neox");
  s.final_norm = {NormKind::layer, epsilon_of(config, "layer_norm_eps", 1e-5)};
  AttentionSpec attention = plain_attention(config, "num_attention_heads", s.width);
  attention.causal = true;
  attention.bias = attention.output_bias = config.boolean("attention_bias", true);
  set_rotation(attention, config, attention.d_qk, {}, {.part = 0.25, .partial = true});
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, "mlp",
                                  {.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth),
                                   .activation = activation_of(config, "hidden_act", "gelu")});
  block.parallel = config.boolean("use_parallel_residual", true);
  repeat_block(s, block, depth_of(config));
  add_linear_head(s, config, false);
  return s;
}

WeightMap gpt_neox_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"embed_in.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    list.norm(b + "ln1", layer + "input_layernorm");
    interleaved_qkv(list, b, layer + "attention.query_key_value",
                    s.blocks[static_cast<size_t>(i)].attention());
    list.linear(b + "attn.", "O", layer + "attention.dense");
    list.norm(b + "ln2", layer + "post_attention_layernorm");
    list.linear(b + "mlp.", "in", layer + "mlp.dense_h_to_4h");
    list.linear(b + "mlp.", "out", layer + "mlp.dense_4h_to_h");
  }
  list.norm("ln_final", "final_layer_norm");
  list.vocabulary(s, "embed_in.weight", "embed_out.weight");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_gpt_neox{
    .name = "gpt_neox",
    .summary =
        "GPT-NeoX, Pythia: causal decoder, attention and MLP side by side, part of the channels rotated",
    .model_types = {"gpt_neox"},
    .prefix = "gpt_neox.",
    .anchor = "embed_in.weight",
    .spec = gpt_neox_spec,
    .weights = gpt_neox_weights};

}  // namespace rankscope
