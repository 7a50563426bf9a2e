// StableLM: Llama's block with LayerNorms, in turn or side by side, rotary positions on a part of the
// channels and, in the larger ones, a norm with gains of its own on every head's queries and keys.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

ModelSpec stablelm_spec(const JsonObject& config) {
  ModelSpec s = rotary_decoder(config, "stablelm");
  s.final_norm = {NormKind::layer, epsilon_of(config, "layer_norm_eps", 1e-5)};
  AttentionSpec attention = grouped_attention(config, s.width);
  attention.bias = config.boolean("use_qkv_bias", false);
  if (config.boolean("qk_layernorm", false)) {
    attention.qk_norm = s.final_norm;
    attention.qk_norm.bias = false;
    attention.qk_norm_span = NormSpan::own_head;
  }
  set_rotation(attention, config, attention.d_qk, {}, {.part = 0.25, .partial = true});
  MlpSpec mlp = gated_mlp_of(config);
  mlp.bias = false;
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, "gated_mlp", mlp);
  block.parallel = config.boolean("use_parallel_residual", false);
  if (block.parallel) block.branches[1].norm_name = block.branches[0].norm_name;
  repeat_block(s, block, depth_of(config));
  add_linear_head(s, config, false);
  return s;
}

// One tensor a head.
Source head_norms(const std::string& module, int64_t heads) {
  Source out{.tensor = module + ".norms.0.weight"};
  for (int64_t h = 1; h < heads; ++h) out.more.push_back(fmt::format("{}.norms.{}.weight", module, h));
  return out;
}

WeightMap stablelm_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"embed_tokens.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const AttentionSpec& a = s.blocks[static_cast<size_t>(i)].attention();
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    list.norm(b + "ln1", layer + "input_layernorm");
    attention_weights(list, b, layer + "self_attn");
    list.add(b + "attn.q_norm.w", head_norms(layer + "self_attn.q_layernorm", a.heads));
    list.add(b + "attn.k_norm.w", head_norms(layer + "self_attn.k_layernorm", a.kv_heads));
    list.norm(b + "ln2", layer + "post_attention_layernorm");
    gated_mlp_weights(list, b, layer + "mlp");
  }
  list.norm("ln_final", "norm");
  list.vocabulary(s, "embed_tokens.weight", "lm_head.weight");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_stablelm{
    .name = "stablelm",
    .summary = "StableLM: causal decoder with LayerNorms, part of the channels rotated",
    .model_types = {"stablelm"},
    .prefix = "model.",
    .anchor = "embed_tokens.weight",
    .spec = stablelm_spec,
    .weights = stablelm_weights};

}  // namespace rankscope
