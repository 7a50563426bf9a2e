// Whisper: an encoder of sounds and a decoder of words, with norms before every branch. Two convolutions make
// one token of two frames of a spectrogram; the encoder's positions are sinusoids, stored like learned ones.
// Its configs have "scale_embedding", which its code does not use.
#include "checkpoint/architecture.h"
#include "checkpoint/encoder_decoder.h"

namespace rankscope {
namespace {

StreamSpec stream(const JsonObject& config, const std::string& side) {
  StreamSpec s;
  s.final_norm = {NormKind::layer, 1e-5};
  const int64_t width = size_at(config, {"d_model"}, kMaxWidth);
  if (side == "encoder")
    s.embedding = {.sounds = config.integer("num_mel_bins", 1, 1 << 12, 80),
                   .width = width,
                   .positions = config.integer("max_source_positions", 1, 1 << 16, 1500)};
  else
    s.embedding = {.vocabulary = vocabulary_of(config),
                   .start_id = start_of(config, -1),
                   .width = width,
                   .positions = config.integer("max_target_positions", 1, kMaxPositions, 448)};
  add_bart_blocks(s, config, side, NormPlace::pre, /*key_bias=*/false);
  return s;
}

ModelSpec whisper_spec(const JsonObject& config) {
  ModelSpec s = encoder_decoder(config, "whisper", PositionKind::learned,
                                [&](const std::string& side) { return stream(config, side); });
  s.init.std = config.number("init_std", 0.0, 1e3, 0.02);
  return s;
}

WeightMap whisper_weights(const ModelSpec& s) {
  WeightList list;
  for_each_stream(s, [&](const StreamSpec& stream, const std::string& to, const std::string& from) {
    const EmbeddingSpec& e = stream.embedding;
    if (e.sounds > 0) {
      list.linear(to + "embed.", "conv1", from + ".conv1", {.stored_shape = {e.width, e.sounds, 3}});
      list.linear(to + "embed.", "conv2", from + ".conv2", {.stored_shape = {e.width, e.width, 3}});
    } else {
      list.add(to + "embed.W_E", {from + ".embed_tokens.weight"});
    }
    list.add(to + "embed.W_pos", {from + ".embed_positions.weight"});
    bart_block_weights(list, stream, to, from);
    list.norm(to + "ln_final", from + ".layer_norm");
  });
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
    .spec = whisper_spec,
    .weights = whisper_weights};

}  // namespace rankscope
