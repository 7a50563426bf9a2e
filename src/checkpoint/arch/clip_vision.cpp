// CLIP's tower for images: a pre-norm encoder of patches with a norm on its embeddings. The norm and the
// projection behind it read the class token alone, so the network ends with its last block.
#include "checkpoint/architecture.h"
#include "checkpoint/clip_tower.h"
#include "checkpoint/image_encoder.h"

namespace rankscope {
namespace {

ModelSpec clip_vision_spec(const JsonObject& config) {
  ModelSpec s = image_encoder(config, "clip_vision", 1, 32);
  s.embedding.bias = false;
  clip_blocks(s, config, false);
  s.embedding.norm = s.blocks.front().branches.front().before;
  return s;
}

WeightMap clip_vision_weights(const ModelSpec& s) {
  const EmbeddingSpec& e = s.embedding;
  WeightList list;
  list.add("embed.W_patch", {.tensor = "embeddings.patch_embedding.weight",
                             .stored_shape = {e.width, e.channels, e.patch_size, e.patch_size}});
  list.add("embed.cls", {"embeddings.class_embedding"});
  list.add("embed.W_pos", {"embeddings.position_embedding.weight"});
  list.norm("embed.ln", "pre_layrnorm");
  clip_block_weights(list, s);
  return list.take(s);
}

}  // namespace

extern const Architecture arch_clip_vision{.name = "clip_vision",
                                           .summary = "CLIP's tower for images: pre-norm encoder of patches",
                                           .model_types = {"clip_vision_model"},
                                           .prefix = "vision_model.",
                                           .anchor = "embeddings.patch_embedding.weight",
                                           .spec = clip_vision_spec,
                                           .weights = clip_vision_weights};

}  // namespace rankscope
