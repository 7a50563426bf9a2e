// DeepSeek-V3: keys and values through one latent, queries through another, and experts in groups that a
// sigmoid router chooses with a correction, beside shared ones that serve every token. The first layers have
// plain MLPs.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"
#include "checkpoint/expert_weights.h"

namespace rankscope {
namespace {

PartSpec attention(const JsonObject& config) {
  AttentionSpec a;
  a.heads = a.kv_heads = config.integer("num_attention_heads", 1, kMaxHeads);
  const int64_t rotated = config.integer("qk_rope_head_dim", 2, kMaxHeadWidth / 2, 64);
  a.d_qk = config.integer("qk_nope_head_dim", 1, kMaxHeadWidth / 2, 128) + rotated;
  a.d_v = config.integer("v_head_dim", 1, kMaxHeadWidth, 128);
  a.scale = 1.0 / std::sqrt(static_cast<double>(a.d_qk));
  a.causal = true;
  set_biases(a, config);
  set_rotation(a, config, rotated);
  a.rotary_adjacent = config.boolean("rope_interleave", true);
  const RopeConfig rope(config);
  if (rope.type() != "default")
    if (const double all = rope.rope().number("mscale_all_dim", 0, 1e6, 0); all != 0)
      a.scale *= std::pow(yarn_mscale(rope.rope().number("factor", 1.0, 1e6), all), 2);
  PartSpec part{"latent_attention", a, {}};
  if (config.has("q_lora_rank"))
    set_option(part, "q_rank", static_cast<double>(config.integer("q_lora_rank", 1, kMaxWidth)));
  set_option(part, "kv_rank", static_cast<double>(config.integer("kv_lora_rank", 1, kMaxWidth, 512)));
  set_option(part, "rotated", static_cast<double>(rotated));
  return part;
}

PartSpec experts(const JsonObject& config) {
  const MlpSpec mlp{.width = size_at(config, {"moe_intermediate_size"}, kMaxMlpWidth),
                    .activation = activation_of(config, "hidden_act", "silu"),
                    .bias = false,
                    .share_scale = config.number("routed_scaling_factor", 0, 1e12, 2.5)};
  PartSpec part{"experts", mlp, {}};
  const auto whole = [&](const char* name, const char* key, int64_t otherwise) {
    set_option(part, name, static_cast<double>(config.integer(key, 1, 1024, otherwise)));
  };
  whole("experts", "n_routed_experts", 256);
  whole("active", "num_experts_per_tok", 8);
  whole("groups", "n_group", 8);
  whole("active_groups", "topk_group", 4);
  set_option(part, "normed", config.boolean("norm_topk_prob", true));
  set_option(part, "sigmoid", 1);
  set_option(part, "correction", 1);
  set_option(part, "shared", static_cast<double>(mlp.width * config.integer("n_shared_experts", 0, 1024, 1)));
  return part;
}

ModelSpec deepseek_spec(const JsonObject& config) {
  refuse_other(config, "scoring_func", "sigmoid");
  refuse_other(config, "topk_method", "noaux_tc");
  if (config.integer("moe_layer_freq", 1, kMaxLayers, 1) != 1)
    refuse(config, "moe_layer_freq", "other than 1");
  ModelSpec s = rotary_decoder(config, "deepseek");
  s.final_norm = rms_of(config, 1e-6);
  MlpSpec mlp = gated_mlp_of(config);
  mlp.bias = false;
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, AttentionSpec{}, "gated_mlp", mlp);
  block.attention_branch()->part = attention(config);
  repeat_block(s, block, depth_of(config));
  const int64_t plain = config.integer("first_k_dense_replace", 0, kMaxLayers, 3);
  const PartSpec mixture = experts(config);
  for (int64_t i = plain; i < s.depth(); ++i) s.blocks[static_cast<size_t>(i)].mlp_branch()->part = mixture;
  add_linear_head(s, config, false);
  return s;
}

// Every head stores its rotated channels last; here they come first.
std::vector<int64_t> rotated_first(int64_t others, int64_t rotated) {
  std::vector<int64_t> order(static_cast<size_t>(others + rotated));
  for (int64_t i = 0; i < others + rotated; ++i)
    order[static_cast<size_t>(i)] = i < rotated ? others + i : i - rotated;
  return order;
}

void latent_weights(WeightList& list, const BranchSpec& branch, const std::string& b,
                    const std::string& module) {
  const AttentionSpec& a = *branch.attention();
  const auto option = [&](const char* name) { return static_cast<int64_t>(option_of(branch.part, name)); };
  const int64_t rotated = option("rotated"), latent = option("kv_rank"), own = a.d_qk - rotated;
  const std::string attn = b + "attn.";
  list.linear(attn, "Q_latent", module + ".q_a_proj");
  list.norm(attn + "q_latent_norm", module + ".q_a_layernorm");
  list.linear(attn, "Q", module + (option("q_rank") > 0 ? ".q_b_proj" : ".q_proj"),
              {.groups = a.heads, .order = rotated_first(own, rotated)});
  list.linear(attn, "KV_latent", module + ".kv_a_proj_with_mqa", {.stored_rows = latent + rotated});
  list.linear(attn, "K_rotated", module + ".kv_a_proj_with_mqa",
              {.first_row = latent, .stored_rows = latent + rotated});
  list.norm(attn + "kv_latent_norm", module + ".kv_a_layernorm");
  const int64_t rows = a.heads * (own + a.d_v);
  list.linear(attn, "K", module + ".kv_b_proj", {.stored_rows = rows, .groups = a.heads});
  list.linear(attn, "V", module + ".kv_b_proj", {.first_row = own, .stored_rows = rows, .groups = a.heads});
  list.linear(attn, "O", module + ".o_proj");
}

WeightMap deepseek_weights(const ModelSpec& s) {
  WeightList list;
  decoder_weights(list, s);
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const BlockSpec& block = s.blocks[static_cast<size_t>(i)];
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    latent_weights(list, *block.attention_branch(), b, layer + "self_attn");
    list.add(b + "mlp.W_router", {layer + "mlp.gate.weight"});
    list.add(b + "mlp.router_correction", {layer + "mlp.gate.e_score_correction_bias"});
    expert_weights(list, block, s.width, b, layer + "mlp.experts");
    list.linear(b + "mlp.shared.", "in", layer + "mlp.shared_experts.up_proj");
    list.linear(b + "mlp.shared.", "gate", layer + "mlp.shared_experts.gate_proj");
    list.linear(b + "mlp.shared.", "out", layer + "mlp.shared_experts.down_proj");
  }
  return list.take(s);
}

}  // namespace

extern const Architecture arch_deepseek{
    .name = "deepseek",
    .summary = "DeepSeek-V3: keys and values through a latent, experts in groups beside shared ones",
    .model_types = {"deepseek_v3"},
    .prefix = "model.",
    .anchor = "embed_tokens.weight",
    .spec = deepseek_spec,
    .weights = deepseek_weights};

}  // namespace rankscope
