// ViT and DeiT: pre-norm encoders over square patches of a square image, with a class token in front. DeiT
// has a second one, which learned from a teacher.
#include "checkpoint/architecture.h"
#include "checkpoint/image_encoder.h"

namespace rankscope {
namespace {

ModelSpec vit_spec(const JsonObject& config) {
  const bool deit = model_type_of(config) == "deit";
  ModelSpec s = image_encoder(config, "vit", deit ? 2 : 1);
  if (deit)
    s.init.constants = {{"embed.cls", 0}, {"embed.class_tokens", 0}, {"embed.W_pos", 0}};
  else
    s.init.stds = {{"embed.cls", s.init.std}};
  s.final_norm = {NormKind::layer, epsilon_of(config, "layer_norm_eps", 1e-12)};
  AttentionSpec attention = plain_attention(config, "num_attention_heads", s.width);
  attention.bias = config.boolean("qkv_bias", true);
  const BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, "mlp",
                                        {.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth),
                                         .activation = activation_of(config, "hidden_act", "gelu")});
  repeat_block(s, block, size_at(config, {"num_hidden_layers"}, kMaxLayers));
  return s;
}

WeightMap vit_weights(const ModelSpec& s) {
  WeightList list;
  vit_weights(list, s);
  list.add("embed.class_tokens",
           {.tensor = "embeddings.distillation_token", .stored_shape = {1, 1, s.embedding.width}});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("encoder.layer.{}.", i);
    list.norm(b + "ln1", layer + "layernorm_before");
    list.norm(b + "ln2", layer + "layernorm_after");
    list.linear(b + "mlp.", "in", layer + "intermediate.dense");
    list.linear(b + "mlp.", "out", layer + "output.dense");
  }
  return list.take(s);
}

}  // namespace

extern const Architecture arch_vit{.name = "vit",
                                   .summary = "ViT, DeiT: pre-norm encoder of image patches",
                                   .model_types = {"vit", "deit"},
                                   .prefix = "vit.",
                                   .anchor = "embeddings.patch_embeddings.projection.weight",
                                   .spec = vit_spec,
                                   .weights = vit_weights};

}  // namespace rankscope
