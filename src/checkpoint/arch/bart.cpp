// BART: an encoder like BERT's and a decoder that also looks at it, with norms behind every branch and
// learned positions that start at 2.
#include "checkpoint/architecture.h"
#include "checkpoint/encoder_decoder.h"

namespace rankscope {
namespace {

StreamSpec stream(const JsonObject& config, const std::string& side) {
  const int64_t width = size_at(config, {"d_model"}, kMaxWidth);
  StreamSpec s;
  s.embedding = {
      .vocabulary = vocabulary_of(config),
      .start_id = side == "decoder" ? start_of(config, 2) : -1,
      .width = width,
      .scale = config.boolean("scale_embedding", false) ? std::sqrt(static_cast<double>(width)) : 1.0,
      .positions = size_at(config, {"max_position_embeddings"}, kMaxPositions) + 2,
      .position_offset = 2,
      .norm = {NormKind::layer, 1e-5}};
  add_bart_blocks(s, config, side, NormPlace::post, /*key_bias=*/true);
  return s;
}

ModelSpec bart_spec(const JsonObject& config) {
  ModelSpec s = encoder_decoder(config, "bart", PositionKind::learned,
                                [&](const std::string& side) { return stream(config, side); });
  s.init.std = config.number("init_std", 0.0, 1e3, 0.02);
  s.output.bias = s.output.kind != HeadKind::none;
  return s;
}

WeightMap bart_weights(const ModelSpec& s) {
  WeightList list;
  for_each_stream(s, [&](const StreamSpec& stream, const std::string& to, const std::string& from) {
    // Untied, either side has words of its own.
    list.add(to + "embed.W_E", {.tensor = from + ".embed_tokens.weight", .other = "shared.weight"});
    list.add(to + "embed.W_pos", {from + ".embed_positions.weight"});
    list.norm(to + "embed.ln", from + ".layernorm_embedding");
    bart_block_weights(list, stream, to, from);
  });
  list.vocabulary(s, "shared.weight", "lm_head.weight");
  list.add(
      "unembed.b_U",
      {.tensor = "final_logits_bias", .outside_base = true, .stored_shape = {1, s.embedding.vocabulary}});
  return list.take(s);
}

}  // namespace

extern const Architecture arch_bart{
    .name = "bart",
    .summary = "BART: encoder and decoder, norms behind every branch, learned positions",
    .model_types = {"bart"},
    .prefix = "model.",
    .anchor = "shared.weight",
    .spec = bart_spec,
    .weights = bart_weights};

}  // namespace rankscope
