// BART: an encoder like BERT's and a decoder that also looks at it, with norms behind every branch and
// learned positions that start at 2.
#include "checkpoint/architecture.h"
#include "checkpoint/encoder_decoder.h"

namespace rankscope {
namespace {

StreamSpec stream(const JsonObject& config, const std::string& side, int64_t width) {
  const auto key = [&](const char* word) { return side + "_" + word; };
  const NormSpec norm{NormKind::layer, 1e-5};
  StreamSpec s;
  s.embedding = {
      .vocabulary = vocabulary_of(config),
      .width = width,
      .scale = config.boolean("scale_embedding", false) ? std::sqrt(static_cast<double>(width)) : 1.0,
      .positions = size_at(config, {"max_position_embeddings"}, kMaxPositions) + 2,
      .position_offset = 2,
      .norm = norm};
  const AttentionSpec other = plain_attention(config, key("attention_heads").c_str(), width);
  AttentionSpec own = other;
  own.causal = side == "decoder";
  const MlpSpec mlp{.width = config.integer(key("ffn_dim").c_str(), 1, kMaxMlpWidth),
                    .activation = activation_of(config, "activation_function", "gelu")};
  BlockSpec block = classic_block(NormPlace::post, norm, own, "mlp", mlp);
  if (side == "decoder") add_cross_attention(block, other);
  repeat_stream_block(s, block, config.integer(key("layers").c_str(), 1, kMaxLayers));
  return s;
}

ModelSpec spec(const JsonObject& config) {
  const int64_t width = size_at(config, {"d_model"}, kMaxWidth);
  const bool whole = !is_encoder_alone(config);
  ModelSpec s = encoder_decoder(stream(config, "encoder", width),
                                whole ? stream(config, "decoder", width) : StreamSpec{}, whole);
  s.architecture = "bart";
  s.width = width;
  s.position = PositionKind::learned;
  s.init.std = config.number("init_std", 0.0, 1e3, 0.02);
  if (whole) s.embedding.start_id = start_of(config, 2);
  if (whole && promises_head(config, {"ForConditionalGeneration"}))
    s.output = {.kind = HeadKind::linear,
                .vocabulary = s.embedding.vocabulary,
                .width = s.width,
                .tied = config.boolean("tie_word_embeddings", true),
                .bias = true};
  return s;
}

void stream_weights(WeightList& list, const StreamSpec& s, const std::string& to, const std::string& from) {
  list.add(to + "embed.W_E", {.tensor = "shared.weight", .other = from + ".embed_tokens.weight"});
  list.add(to + "embed.W_pos", {from + ".embed_positions.weight"});
  list.norm(to + "embed.ln", from + ".layernorm_embedding");
  bart_block_weights(list, s, to, from);
}

WeightMap weights(const ModelSpec& s) {
  WeightList list;
  if (s.sources.empty()) {
    stream_weights(list, s, "", "encoder");
  } else {
    stream_weights(list, s.sources.front(), "encoder.", "encoder");
    stream_weights(list, s, "", "decoder");
  }
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
    .spec = spec,
    .weights = weights};

}  // namespace rankscope
