// ViT: a pre-norm encoder over square patches of a square image, with a class token in front.
#include "checkpoint/architecture.h"
#include "checkpoint/config.h"
#include "checkpoint/weight_list.h"

namespace rankscope {
namespace {

// A size is a number or a pair of equal ones.
int64_t square_side(const JsonObject& config, const char* key, int64_t most, int64_t otherwise) {
  if (!config.has(key) || !config.at(key).is_array()) return config.integer(key, 1, most, otherwise);
  const Json& pair = config.at(key);
  if (pair.size() != 2 || pair[0] != pair[1])
    refuse(config, key, pair.dump(-1, ' ', true, Json::error_handler_t::replace) + " (not a square)");
  const Json side{{key, pair[0]}};
  return JsonObject(side, config.place()).integer(key, 1, most);
}

ModelSpec spec(const JsonObject& config) {
  refuse_pruned(config);
  ModelSpec s;
  s.architecture = "vit";
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  s.position = PositionKind::learned;
  s.init.std = init_std_of(config);
  const int64_t image = square_side(config, "image_size", 1 << 12, 224);
  const int64_t patch = square_side(config, "patch_size", image, 16);
  const int64_t patches = (image / patch) * (image / patch);
  s.embedding = {.width = s.width,
                 .positions = patches + 1,
                 .image_size = image,
                 .patch_size = patch,
                 .channels = config.integer("num_channels", 1, 1 << 10, 3)};
  s.final_norm = {NormKind::layer, epsilon_of(config, "layer_norm_eps", 1e-12)};
  AttentionSpec attention = plain_attention(config, "num_attention_heads", s.width);
  attention.bias = config.boolean("qkv_bias", true);
  const BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, "mlp",
                                        {.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth),
                                         .activation = activation_of(config, "hidden_act", "gelu")});
  repeat_block(s, block, size_at(config, {"num_hidden_layers"}, kMaxLayers));
  return s;
}

WeightMap weights(const ModelSpec& s) {
  const EmbeddingSpec& e = s.embedding;
  WeightList list;
  list.linear("embed.", "patch", "embeddings.patch_embeddings.projection",
              {.stored_shape = {e.width, e.channels, e.patch_size, e.patch_size}});
  list.add("embed.cls", {.tensor = "embeddings.cls_token", .stored_shape = {1, 1, e.width}});
  list.add("embed.W_pos",
           {.tensor = "embeddings.position_embeddings", .stored_shape = {1, e.positions, e.width}});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("encoder.layer.{}.", i);
    list.norm(b + "ln1", layer + "layernorm_before");
    list.linear(b + "attn.", "Q", layer + "attention.attention.query");
    list.linear(b + "attn.", "K", layer + "attention.attention.key");
    list.linear(b + "attn.", "V", layer + "attention.attention.value");
    list.linear(b + "attn.", "O", layer + "attention.output.dense");
    list.norm(b + "ln2", layer + "layernorm_after");
    list.linear(b + "mlp.", "in", layer + "intermediate.dense");
    list.linear(b + "mlp.", "out", layer + "output.dense");
  }
  list.norm("ln_final", "layernorm");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_vit{.name = "vit",
                                   .summary = "ViT: pre-norm encoder of image patches",
                                   .model_types = {"vit"},
                                   .prefix = "vit.",
                                   .anchor = "embeddings.patch_embeddings.projection.weight",
                                   .spec = spec,
                                   .weights = weights};

}  // namespace rankscope
