// Networks of two streams: an encoder, and a decoder whose branches "cross" read it.
#pragma once

#include <string>

#include "checkpoint/config.h"

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
