// CLIP's tower for texts: a causal pre-norm decoder with learned positions. What it says of a text is the
// last token, projected; the projection reads one token and no more, so it is no head of this network.
#include "checkpoint/architecture.h"
#include "checkpoint/clip_tower.h"

namespace rankscope {
namespace {

ModelSpec clip_text_spec(const JsonObject& config) {
  refuse_pruned(config);
  ModelSpec s;
  s.architecture = "clip_text";
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  s.position = PositionKind::learned;
  s.init.std = init_std_of(config);
  s.embedding = {.vocabulary = vocabulary_of(config),
                 .width = s.width,
                 .positions = config.integer("max_position_embeddings", 1, kMaxPositions, 77)};
  clip_blocks(s, config, true);
  s.final_norm = s.blocks.front().branches.front().before;
  return s;
}

WeightMap clip_text_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"embeddings.token_embedding.weight"});
  list.add("embed.W_pos", {"embeddings.position_embedding.weight"});
  clip_block_weights(list, s);
  list.norm("ln_final", "final_layer_norm");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_clip_text{.name = "clip_text",
                                         .summary = "CLIP's tower for texts: causal pre-norm decoder",
                                         .model_types = {"clip_text_model"},
                                         .prefix = "text_model.",
                                         .anchor = "embeddings.token_embedding.weight",
                                         .spec = clip_text_spec,
                                         .weights = clip_text_weights};

}  // namespace rankscope
