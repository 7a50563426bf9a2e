// Granite: Llama with four multipliers, on embeddings, scores, branches and logits.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

ModelSpec granite_spec(const JsonObject& config) {
  ModelSpec s = rotary_decoder(config, "granite");
  s.embedding.scale = config.number("embedding_multiplier", 0, 1e12, 1.0);
  s.final_norm = rms_of(config, 1e-6);
  AttentionSpec attention = grouped_attention(config, s.width);
  set_biases(attention, config);
  attention.scale = config.number("attention_multiplier", 0, 1e12, 1.0);
  set_rotation(attention, config, attention.d_qk);
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, "gated_mlp", gated_mlp_of(config));
  for (BranchSpec& branch : block.branches) branch.scale = config.number("residual_multiplier", 0, 1e12, 1.0);
  repeat_block(s, block, depth_of(config));
  add_linear_head(s, config, false);
  if (s.output.kind != HeadKind::none)
    s.output.scale = 1.0 / config.number("logits_scaling", 1e-12, 1e12, 1.0);
  return s;
}

}  // namespace

extern const Architecture arch_granite{
    .name = "granite",
    .summary = "Granite: Llama with multipliers on embeddings, scores, branches and logits",
    .model_types = {"granite"},
    .prefix = "model.",
    .anchor = "embed_tokens.weight",
    .spec = granite_spec,
    .weights = llama_weights};

}  // namespace rankscope
