// Phi-1 to Phi-2: attention and MLP side by side behind one norm that both read through, rotary positions on
// a part of the channels.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

ModelSpec phi_spec(const JsonObject& config) {
  ModelSpec s = rotary_decoder(config, "phi");
  s.final_norm = {NormKind::layer, epsilon_of(config, "layer_norm_eps", 1e-5)};
  AttentionSpec attention = grouped_attention(config, s.width);
  attention.bias = attention.output_bias = true;
  if (config.boolean("qk_layernorm", false)) attention.qk_norm = s.final_norm;
  set_rotation(attention, config, attention.d_qk, {}, {.part = 0.5, .partial = true});
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, "mlp",
                                  {.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth),
                                   .activation = activation_of(config, "hidden_act", "gelu_new")});
  block.parallel = true;
  block.branches[1].norm_name = block.branches[0].norm_name;
  repeat_block(s, block, depth_of(config));
  add_linear_head(s, config, false, /*bias=*/true);
  return s;
}

WeightMap phi_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"embed_tokens.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    list.norm(b + "ln1", layer + "input_layernorm");
    attention_weights(list, b, layer + "self_attn", "dense");
    list.norm(b + "attn.q_norm", layer + "self_attn.q_layernorm");
    list.norm(b + "attn.k_norm", layer + "self_attn.k_layernorm");
    list.linear(b + "mlp.", "in", layer + "mlp.fc1");
    list.linear(b + "mlp.", "out", layer + "mlp.fc2");
  }
  list.norm("ln_final", "final_layernorm");
  list.vocabulary(s, "embed_tokens.weight", "lm_head.weight");
  list.add("unembed.b_U", {.tensor = "lm_head.bias", .outside_base = true});
  return list.take(s);
}

}  // namespace

extern const Architecture arch_phi{
    .name = "phi",
    .summary = "Phi-1, Phi-1.5, Phi-2: causal decoder, attention and MLP side by side behind one norm",
    .model_types = {"phi"},
    .prefix = "model.",
    .anchor = "embed_tokens.weight",
    .spec = phi_spec,
    .weights = phi_weights};

}  // namespace rankscope
