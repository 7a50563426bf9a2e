// Networks of two streams: an encoder, and a decoder whose branches "cross" read it.
#pragma once

#include <string>
#include <utility>

#include "checkpoint/config.h"
#include "checkpoint/weight_list.h"

namespace rankscope {

/// Whether the config is of the encoder by itself, as in "T5EncoderModel".
inline bool is_encoder_alone(const JsonObject& config) {
  if (!config.has("architectures")) return false;
  for (const Json& name : config.at("architectures"))
    if (name.is_string() && name.get_ref<const std::string&>().ends_with("EncoderModel")) return true;
  return false;
}

inline void repeat_stream_block(StreamSpec& s, const BlockSpec& block, int64_t depth) {
  s.blocks.assign(static_cast<size_t>(depth), block);
  for (int64_t i = 0; i < depth; ++i) s.blocks[static_cast<size_t>(i)].weights = i;
  s.stored_blocks = depth;
}

/// A branch behind self-attention that looks at the encoder, with norms where the other branches have theirs.
inline void add_cross_attention(BlockSpec& block, const AttentionSpec& attention) {
  BranchSpec cross = *block.attention_branch();
  cross.name = "cross";
  cross.norm_name = "ln_cross";
  cross.reads = "encoder";
  cross.part = {"attention", attention, {}};
  block.branches.insert(block.branches.begin() + 1, cross);
}

/// The blocks of a stream under BART's names; what looks at the encoder is taken where there is such a
/// branch.
inline void bart_block_weights(WeightList& list, const StreamSpec& s, const std::string& to,
                               const std::string& from) {
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("{}blocks.{}.", to, i), layer = fmt::format("{}.layers.{}.", from, i);
    list.norm(b + "ln1", layer + "self_attn_layer_norm");
    list.norm(b + "ln_cross", layer + "encoder_attn_layer_norm");
    for (const auto& [letter, name] :
         {std::pair{"Q", "q_proj"}, {"K", "k_proj"}, {"V", "v_proj"}, {"O", "out_proj"}}) {
      list.linear(b + "attn.", letter, layer + "self_attn." + name);
      list.linear(b + "cross.", letter, layer + "encoder_attn." + name);
    }
    list.norm(b + "ln2", layer + "final_layer_norm");
    list.linear(b + "mlp.", "in", layer + "fc1");
    list.linear(b + "mlp.", "out", layer + "fc2");
  }
}

/// Calls `each` with every stream, what stands before its parameters here and the name it is stored under.
template <class Each>
void for_each_stream(const ModelSpec& s, Each each) {
  if (s.sources.empty()) return each(s, std::string(), std::string("encoder"));
  each(s.sources.front(), std::string("encoder."), std::string("encoder"));
  each(s, std::string(), std::string("decoder"));
}

/// The blocks of one side under BART's names in config.json: attention, in the decoder a branch that looks at
/// the encoder, and an MLP, with LayerNorms at `place`.
inline void add_bart_blocks(StreamSpec& s, const JsonObject& config, const std::string& side, NormPlace place,
                            bool key_bias) {
  const auto key = [&](const char* word) { return side + "_" + word; };
  AttentionSpec other = plain_attention(config, key("attention_heads").c_str(), s.embedding.width);
  other.key_bias = key_bias;
  AttentionSpec own = other;
  own.causal = side == "decoder";
  const MlpSpec mlp{.width = config.integer(key("ffn_dim").c_str(), 1, kMaxMlpWidth),
                    .activation = activation_of(config, "activation_function", "gelu")};
  BlockSpec block = classic_block(place, {NormKind::layer, 1e-5}, own, "mlp", mlp);
  if (side == "decoder") add_cross_attention(block, other);
  repeat_stream_block(s, block, config.integer(key("layers").c_str(), 1, kMaxLayers));
}

/// What a decoder reads before its first token.
inline int64_t start_of(const JsonObject& config, int64_t otherwise) {
  return config.integer("decoder_start_token_id", 0, kMaxVocabulary, otherwise);
}

/// The encoder by itself, or the decoder with the encoder as its source and the vocabulary that the config
/// promises. `stream(side)` makes one.
template <class Stream>
ModelSpec encoder_decoder(const JsonObject& config, const char* architecture, PositionKind position,
                          Stream stream) {
  const bool whole = !is_encoder_alone(config);
  ModelSpec s;
  StreamSpec encoder = stream("encoder");
  static_cast<StreamSpec&>(s) = whole ? stream("decoder") : encoder;
  s.architecture = architecture;
  s.width = encoder.embedding.width;
  s.position = position;
  if (!whole) return s;
  encoder.name = "encoder";
  s.sources.push_back(std::move(encoder));
  if (promises_head(config, {"ForConditionalGeneration"}))
    s.output = {.kind = HeadKind::linear,
                .vocabulary = s.embedding.vocabulary,
                .width = s.width,
                .tied = config.boolean("tie_word_embeddings", true)};
  return s;
}

}  // namespace rankscope
