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

/// What a decoder reads before its first token.
inline int64_t start_of(const JsonObject& config, int64_t otherwise) {
  return config.integer("decoder_start_token_id", 0, kMaxVocabulary, otherwise);
}

/// The encoder by itself, or the decoder with the encoder as its source.
inline ModelSpec encoder_decoder(StreamSpec encoder, const StreamSpec& decoder, bool whole) {
  ModelSpec s;
  static_cast<StreamSpec&>(s) = whole ? decoder : encoder;
  if (!whole) return s;
  encoder.name = "encoder";
  s.sources.push_back(std::move(encoder));
  return s;
}

}  // namespace rankscope
