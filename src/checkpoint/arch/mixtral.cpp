// Mixtral and Qwen3-MoE: Llama's block with a mixture of experts for an MLP. Experts are stored one by one,
// or all in one tensor where the folder was written so.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"
#include "checkpoint/expert_weights.h"

namespace rankscope {
namespace {

ModelSpec mixtral_spec(const JsonObject& config) {
  const bool qwen = model_type_of(config) == "qwen3_moe";
  ModelSpec s = rotary_decoder(config, "mixtral");
  s.final_norm = rms_of(config, qwen ? 1e-6 : 1e-5);
  AttentionSpec attention = grouped_attention(config, s.width);
  if (qwen) set_biases(attention, config);
  if (qwen) attention.qk_norm = s.final_norm;
  set_rotation(attention, config, attention.d_qk, {}, {.theta = qwen ? 10000.0 : 1e6});
  const int64_t depth = depth_of(config);
  MlpSpec mlp = gated_mlp_of(config);
  mlp.bias = false;
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, "gated_mlp", mlp);
  if (!qwen || config.boolean("use_sliding_window", false))
    block.attention().window = window_of(config, qwen ? 4096 : 0);
  repeat_block(s, block, depth);

  if (qwen) mlp.width = size_at(config, {"moe_intermediate_size"}, kMaxMlpWidth);
  PartSpec experts{"experts", mlp, {}};
  set_option(experts, "experts",
             config.integer(key_of(config, {"num_local_experts", "num_experts"}), 1, 1024));
  set_option(experts, "active", config.integer("num_experts_per_tok", 1, 1024, qwen ? 8 : 2));
  set_option(experts, "normed", qwen ? config.boolean("norm_topk_prob", false) : 1);
  const std::vector<bool> dense =
      qwen ? dense_layers(config, depth) : std::vector<bool>(s.blocks.size(), false);
  for (size_t i = 0; i < s.blocks.size(); ++i)
    if (!dense[i]) s.blocks[i].mlp_branch()->part = experts;
  add_linear_head(s, config, false);
  return s;
}

WeightMap mixtral_weights(const ModelSpec& s) {
  WeightList list;
  decoder_weights(list, s);
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    list.add(b + "mlp.W_router",
             {.tensor = layer + "mlp.gate.weight", .other = layer + "block_sparse_moe.gate.weight"});
    expert_weights(list, s.blocks[static_cast<size_t>(i)], s.width, b, layer + "mlp.experts",
                   layer + "block_sparse_moe.experts");
  }
  return list.take(s);
}

}  // namespace

extern const Architecture arch_mixtral{
    .name = "mixtral",
    .summary = "Mixtral, Qwen3-MoE: Llama's block with a mixture of experts",
    .model_types = {"mixtral", "qwen3_moe"},
    .prefix = "model.",
    .anchor = "embed_tokens.weight",
    .spec = mixtral_spec,
    .weights = mixtral_weights};

}  // namespace rankscope
