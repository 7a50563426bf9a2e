// The encoder of BERT, which RoBERTa took over tensor by tensor: post-norm, learned positions, token types.
#pragma once

#include "checkpoint/config.h"
#include "checkpoint/weight_list.h"

namespace rankscope {

/// Everything but the head.
inline ModelSpec bert_encoder(const JsonObject& config, const char* architecture) {
  refuse_true(config, {"is_decoder", "add_cross_attention"});
  refuse_other(config, "position_embedding_type", "absolute");
  refuse_pruned(config);

  ModelSpec s;
  s.architecture = architecture;
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  s.position = PositionKind::learned;
  s.init.std = init_std_of(config);
  const NormSpec norm{NormKind::layer, epsilon_of(config, "layer_norm_eps", 1e-12)};
  s.embedding = {.vocabulary = vocabulary_of(config),
                 .width = s.width,
                 .positions = size_at(config, {"max_position_embeddings"}, kMaxPositions),
                 .types = config.integer("type_vocab_size", 1, kMaxTypes, 2),
                 .norm = norm};
  const BlockSpec block =
      classic_block(NormPlace::post, norm, plain_attention(config, "num_attention_heads", s.width), "mlp",
                    {.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth),
                     .activation = activation_of(config, "hidden_act", "gelu")});
  repeat_block(s, block, size_at(config, {"num_hidden_layers"}, kMaxLayers));
  return s;
}

/// dense, activation, norm, vocabulary: the head of masked language models, with the encoder's norm.
inline OutputSpec masked_head(const JsonObject& config, const ModelSpec& s, Activation activation) {
  return {.kind = HeadKind::transformed,
          .vocabulary = s.embedding.vocabulary,
          .width = s.embedding.width,
          .tied = config.boolean("tie_word_embeddings", true),
          .bias = true,
          .activation = activation,
          .norm = s.embedding.norm};
}

inline void bert_encoder_weights(WeightList& list, const ModelSpec& s) {
  list.add("embed.W_E", {.tensor = "embeddings.word_embeddings.weight"});
  list.add("embed.W_pos", {.tensor = "embeddings.position_embeddings.weight"});
  list.add("embed.W_type", {.tensor = "embeddings.token_type_embeddings.weight"});
  list.norm("embed.ln", "embeddings.LayerNorm");
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("encoder.layer.{}.", i);
    list.linear(b + "attn.", "Q", layer + "attention.self.query");
    list.linear(b + "attn.", "K", layer + "attention.self.key");
    list.linear(b + "attn.", "V", layer + "attention.self.value");
    list.linear(b + "attn.", "O", layer + "attention.output.dense");
    list.norm(b + "ln1", layer + "attention.output.LayerNorm");
    list.linear(b + "mlp.", "in", layer + "intermediate.dense");
    list.linear(b + "mlp.", "out", layer + "output.dense");
    list.norm(b + "ln2", layer + "output.LayerNorm");
  }
}

}  // namespace rankscope
