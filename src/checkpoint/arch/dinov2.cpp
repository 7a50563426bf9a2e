// DINOv2: ViT with a learned scale per channel on what each branch writes and, in the version with registers,
// tokens that belong to no patch and have no position.
#include "checkpoint/architecture.h"
#include "checkpoint/image_encoder.h"

namespace rankscope {
namespace {

ModelSpec dinov2_spec(const JsonObject& config) {
  const bool registers = model_type_of(config) == "dinov2_with_registers";
  ModelSpec s = image_encoder(config, "dinov2");
  s.init.stds = {{"embed.cls", s.init.std}};
  s.init.constants = {{"layer_scale", config.number("layerscale_value", -1e3, 1e3, 1.0)},
                      {"embed.registers", 0}};
  if (registers) s.embedding.registers = config.integer("num_register_tokens", 0, kMaxTokens, 4);
  s.final_norm = {NormKind::layer, epsilon_of(config, "layer_norm_eps", 1e-6)};
  AttentionSpec attention = plain_attention(config, "num_attention_heads", s.width);
  attention.bias = config.boolean("qkv_bias", true);
  auto hidden =
      static_cast<int64_t>(static_cast<double>(s.width) * config.number("mlp_ratio", 1e-3, 1 << 10, 4));
  const bool gated = config.boolean("use_swiglu_ffn", false);
  if (gated) hidden = (hidden * 2 / 3 + 7) / 8 * 8;
  const Activation activation = gated ? Activation::silu : activation_of(config, "hidden_act", "gelu");
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, gated ? "gated_mlp" : "mlp",
                                  {.width = hidden, .activation = activation});
  for (BranchSpec& branch : block.branches) branch.channel_scale = true;
  repeat_block(s, block, size_at(config, {"num_hidden_layers"}, kMaxLayers));
  return s;
}

WeightMap dinov2_weights(const ModelSpec& s) {
  WeightList list;
  vit_weights(list, s);
  list.add("embed.registers", {.tensor = "embeddings.register_tokens",
                               .stored_shape = {1, s.embedding.registers, s.embedding.width}});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("encoder.layer.{}.", i);
    const BranchSpec& mlp = *s.blocks[static_cast<size_t>(i)].mlp_branch();
    const int64_t hidden = mlp.mlp()->width;
    list.norm(b + "ln1", layer + "norm1");
    list.add(b + "attn.layer_scale", {layer + "layer_scale1.lambda1"});
    list.norm(b + "ln2", layer + "norm2");
    list.add(b + "mlp.layer_scale", {layer + "layer_scale2.lambda1"});
    if (mlp.part.name == "gated_mlp") {
      list.linear(b + "mlp.", "gate", layer + "mlp.weights_in", {.stored_rows = 2 * hidden});
      list.linear(b + "mlp.", "in", layer + "mlp.weights_in",
                  {.first_row = hidden, .stored_rows = 2 * hidden});
      list.linear(b + "mlp.", "out", layer + "mlp.weights_out");
    } else {
      list.linear(b + "mlp.", "in", layer + "mlp.fc1");
      list.linear(b + "mlp.", "out", layer + "mlp.fc2");
    }
  }
  return list.take(s);
}

}  // namespace

extern const Architecture arch_dinov2{
    .name = "dinov2",
    .summary = "DINOv2, with and without registers: ViT with learned scales on its branches",
    .model_types = {"dinov2", "dinov2_with_registers"},
    .prefix = "dinov2.",
    .anchor = "embeddings.patch_embeddings.projection.weight",
    .spec = dinov2_spec,
    .weights = dinov2_weights};

}  // namespace rankscope
