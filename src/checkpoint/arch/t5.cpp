// T5 and Flan-T5: an encoder and a decoder with RMS norms before every branch, no biases, and positions that
// are learned biases on the scores, one for every range of distances. The bias is stored with the first block
// of a stream and serves all of them.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"
#include "checkpoint/encoder_decoder.h"

namespace rankscope {
namespace {

AttentionSpec attention(const JsonObject& config) {
  AttentionSpec a;
  a.heads = a.kv_heads = config.integer("num_heads", 1, kMaxHeads);
  a.d_qk = a.d_v = config.integer("d_kv", 1, kMaxHeadWidth);
  a.bias = a.output_bias = false;
  return a;
}

MlpSpec mlp_of(const JsonObject& config, std::string& part) {
  const std::string words = config.string("feed_forward_proj", "relu");
  const bool gated = words.starts_with("gated-");
  part = gated ? "gated_mlp" : "mlp";
  // The original calls the approximate one gelu.
  const Json named{{"feed_forward_proj", words == "gated-gelu" ? "gelu_new"
                                         : gated               ? words.substr(6)
                                                               : words}};
  return {.width = size_at(config, {"d_ff"}, kMaxMlpWidth),
          .activation = activation_of(JsonObject(named, config.place()), "feed_forward_proj", "relu"),
          .bias = false};
}

StreamSpec stream(const JsonObject& config, bool decoder) {
  StreamSpec s;
  s.embedding = {
      .vocabulary = vocabulary_of(config),
      .start_id = decoder ? start_of(config, config.integer("pad_token_id", 0, kMaxVocabulary, 0)) : -1,
      .width = size_at(config, {"d_model"}, kMaxWidth)};
  s.final_norm = {NormKind::rms, epsilon_of(config, "layer_norm_epsilon", 1e-6)};
  AttentionSpec own = attention(config);
  own.causal = decoder;
  own.buckets = config.integer("relative_attention_num_buckets", 4, kMaxPositions, 32);
  own.bucket_distance = config.integer("relative_attention_max_distance", 1, kMaxPositions, 128);
  std::string part;
  const MlpSpec mlp = mlp_of(config, part);
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, own, part, mlp);
  if (decoder) add_cross_attention(block, attention(config));
  const int64_t layers = size_at(config, {"num_layers"}, kMaxLayers);
  repeat_stream_block(s, block,
                      decoder ? config.integer("num_decoder_layers", 1, kMaxLayers, layers) : layers);
  return s;
}

// Queries start so small that no scale is needed on the scores.
void set_init(ModelSpec& s, const JsonObject& config) {
  const double factor = config.number("initializer_factor", 0.0, 1e3, 1.0);
  const AttentionSpec& a = s.blocks.front().attention();
  const auto over_root = [&](int64_t n) { return factor / std::sqrt(static_cast<double>(n)); };
  s.init.stds = {{"W_Q", over_root(s.width * a.d_qk)},
                 {"W_K", over_root(s.width)},
                 {"W_V", over_root(s.width)},
                 {"W_O", over_root(a.heads * a.d_v)},
                 {"W_in", over_root(s.width)},
                 {"W_gate", over_root(s.width)},
                 {"W_out", over_root(s.blocks.front().mlp_branch()->mlp()->width)},
                 {"bucket_bias", over_root(s.width)},
                 {"embed.W_E", factor},
                 {"unembed.W_U", factor}};
  s.init.constants = {{"w", factor}};
}

ModelSpec t5_spec(const JsonObject& config) {
  ModelSpec s = encoder_decoder(config, "t5", PositionKind::buckets,
                                [&](const std::string& side) { return stream(config, side == "decoder"); });
  set_init(s, config);
  // Tied logits are scaled; the newest configs say it by itself.
  if (s.output.kind != HeadKind::none && config.boolean("scale_decoder_outputs", s.output.tied))
    s.output.scale = 1.0 / std::sqrt(static_cast<double>(s.width));
  return s;
}

void stream_weights(WeightList& list, const StreamSpec& s, const std::string& to, const std::string& from) {
  list.add(to + "embed.W_E", {"shared.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("{}blocks.{}.", to, i);
    const auto layer = [&](int64_t n) { return fmt::format("{}.block.{}.layer.{}.", from, i, n); };
    const auto attention = [&](const std::string& branch, const std::string& module) {
      for (const auto& [letter, name] : {std::pair{"Q", "q"}, {"K", "k"}, {"V", "v"}, {"O", "o"}})
        list.linear(b + branch, letter, module + "." + name);
    };
    const bool cross = s.blocks[static_cast<size_t>(i)].branches.size() == 3;
    list.norm(b + "ln1", layer(0) + "layer_norm");
    attention("attn.", layer(0) + "SelfAttention");
    list.add(b + "attn.bucket_bias",
             {fmt::format("{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", from)});
    if (cross) {
      list.norm(b + "ln_cross", layer(1) + "layer_norm");
      attention("cross.", layer(1) + "EncDecAttention");
    }
    const std::string last = layer(cross ? 2 : 1);
    const bool gated = s.blocks[static_cast<size_t>(i)].mlp_branch()->part.name == "gated_mlp";
    list.norm(b + "ln2", last + "layer_norm");
    list.linear(b + "mlp.", "gate", last + "DenseReluDense.wi_0");
    list.linear(b + "mlp.", "in", last + (gated ? "DenseReluDense.wi_1" : "DenseReluDense.wi"));
    list.linear(b + "mlp.", "out", last + "DenseReluDense.wo");
  }
  list.norm(to + "ln_final", from + ".final_layer_norm");
}

WeightMap t5_weights(const ModelSpec& s) {
  WeightList list;
  for_each_stream(s, [&](const StreamSpec& stream, const std::string& to, const std::string& from) {
    stream_weights(list, stream, to, from);
  });
  list.vocabulary(s, "shared.weight", "lm_head.weight");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_t5{
    .name = "t5",
    .summary = "T5, Flan-T5: encoder and decoder, learned biases by ranges of distance",
    .model_types = {"t5"},
    .prefix = "",
    .anchor = "shared.weight",
    .spec = t5_spec,
    .weights = t5_weights};

}  // namespace rankscope
