// What the encoders of image patches share: a square image in square patches, learned positions, pre-norm
// blocks.
#pragma once

#include "checkpoint/config.h"
#include "checkpoint/weight_list.h"

namespace rankscope {

/// A size is a number or a pair of equal ones.
inline int64_t square_side(const JsonObject& config, const char* key, int64_t most, int64_t otherwise) {
  if (!config.has(key) || !config.at(key).is_array()) return config.integer(key, 1, most, otherwise);
  const Json& pair = config.at(key);
  if (pair.size() != 2 || pair[0] != pair[1])
    refuse(config, key, pair.dump(-1, ' ', true, Json::error_handler_t::replace) + " (not a square)");
  const Json side{{key, pair[0]}};
  return JsonObject(side, config.place()).integer(key, 1, most);
}

/// Patches of an image, `class_tokens` in front of them and positions for all.
inline ModelSpec image_encoder(const JsonObject& config, const char* architecture, int64_t class_tokens = 1,
                               int64_t usual_patch = 16) {
  refuse_pruned(config);
  ModelSpec s;
  s.architecture = architecture;
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  s.position = PositionKind::learned;
  s.init.std = init_std_of(config);
  const int64_t image = square_side(config, "image_size", 1 << 12, 224);
  const int64_t patch = square_side(config, "patch_size", image, usual_patch);
  s.embedding = {.width = s.width,
                 .positions = (image / patch) * (image / patch) + class_tokens,
                 .image_size = image,
                 .patch_size = patch,
                 .channels = config.integer("num_channels", 1, 1 << 10, 3),
                 .class_tokens = class_tokens};
  return s;
}

/// The embedding and the attention of ViT, whose names its relatives kept.
inline void vit_weights(WeightList& list, const ModelSpec& s) {
  const EmbeddingSpec& e = s.embedding;
  list.linear("embed.", "patch", "embeddings.patch_embeddings.projection",
              {.stored_shape = {e.width, e.channels, e.patch_size, e.patch_size}});
  list.add("embed.cls", {.tensor = "embeddings.cls_token", .stored_shape = {1, 1, e.width}});
  list.add("embed.W_pos",
           {.tensor = "embeddings.position_embeddings", .stored_shape = {1, e.positions, e.width}});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("encoder.layer.{}.", i);
    list.linear(b + "attn.", "Q", layer + "attention.attention.query");
    list.linear(b + "attn.", "K", layer + "attention.attention.key");
    list.linear(b + "attn.", "V", layer + "attention.attention.value");
    list.linear(b + "attn.", "O", layer + "attention.output.dense");
  }
  list.norm("ln_final", "layernorm");
}

}  // namespace rankscope
