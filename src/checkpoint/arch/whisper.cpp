// Whisper: an encoder of sounds and a decoder of words, with norms before every branch. Two convolutions make
// one token of two frames of a spectrogram; the encoder's positions are sinusoids, stored like learned ones.
#include "checkpoint/architecture.h"
#include "checkpoint/encoder_decoder.h"

namespace rankscope {
namespace {

StreamSpec stream(const JsonObject& config, const std::string& side, int64_t width) {
  const auto key = [&](const char* word) { return side + "_" + word; };
  StreamSpec s;
  s.final_norm = {NormKind::layer, 1e-5};
  if (side == "encoder")
    s.embedding = {.sounds = config.integer("num_mel_bins", 1, 1 << 12, 80),
                   .width = width,
                   .positions = config.integer("max_source_positions", 1, 1 << 16, 1500)};
  else
    s.embedding = {.vocabulary = vocabulary_of(config),
                   .start_id = start_of(config, -1),
                   .width = width,
                   .positions = config.integer("max_target_positions", 1, kMaxPositions, 448)};
  AttentionSpec other = plain_attention(config, key("attention_heads").c_str(), width);
  other.key_bias = false;
  AttentionSpec own = other;
  own.causal = side == "decoder";
  const MlpSpec mlp{.width = config.integer(key("ffn_dim").c_str(), 1, kMaxMlpWidth),
                    .activation = activation_of(config, "activation_function", "gelu")};
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, own, "mlp", mlp);
  if (side == "decoder") add_cross_attention(block, other);
  repeat_stream_block(s, block, config.integer(key("layers").c_str(), 1, kMaxLayers));
  return s;
}

ModelSpec spec(const JsonObject& config) {
  refuse_true(config, {"scale_embedding"});
  const int64_t width = size_at(config, {"d_model"}, kMaxWidth);
  const bool whole = !is_encoder_alone(config);
  ModelSpec s = encoder_decoder(stream(config, "encoder", width),
                                whole ? stream(config, "decoder", width) : StreamSpec{}, whole);
  s.architecture = "whisper";
  s.width = width;
  s.position = PositionKind::learned;
  s.init.std = config.number("init_std", 0.0, 1e3, 0.02);
  if (whole && promises_head(config, {"ForConditionalGeneration"}))
    s.output = {.kind = HeadKind::linear,
                .vocabulary = s.embedding.vocabulary,
                .width = s.width,
                .tied = config.boolean("tie_word_embeddings", true)};
  return s;
}

void encoder_weights(WeightList& list, const StreamSpec& s, const std::string& to) {
  const EmbeddingSpec& e = s.embedding;
  list.linear(to + "embed.", "conv1", "encoder.conv1", {.stored_shape = {e.width, e.sounds, 3}});
  list.linear(to + "embed.", "conv2", "encoder.conv2", {.stored_shape = {e.width, e.width, 3}});
  list.add(to + "embed.W_pos", {"encoder.embed_positions.weight"});
  bart_block_weights(list, s, to, "encoder");
  list.norm(to + "ln_final", "encoder.layer_norm");
}

WeightMap weights(const ModelSpec& s) {
  WeightList list;
  if (s.sources.empty()) {
    encoder_weights(list, s, "");
    return list.take(s);
  }
  encoder_weights(list, s.sources.front(), "encoder.");
  list.add("embed.W_E", {"decoder.embed_tokens.weight"});
  list.add("embed.W_pos", {"decoder.embed_positions.weight"});
  bart_block_weights(list, s, "", "decoder");
  list.norm("ln_final", "decoder.layer_norm");
  list.vocabulary(s, "decoder.embed_tokens.weight", "proj_out.weight");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_whisper{
    .name = "whisper",
    .summary = "Whisper: encoder of sounds and decoder of words, norms before every branch",
    .model_types = {"whisper"},
    .prefix = "model.",
    .anchor = "encoder.conv1.weight",
    .spec = spec,
    .weights = weights};

}  // namespace rankscope
