// BERT and its smaller kin (MiniLM): a post-norm encoder with learned positions and token types.
#include "checkpoint/architecture.h"
#include "checkpoint/config.h"
#include "checkpoint/weight_list.h"

namespace rankscope {
namespace {

ModelSpec spec(const JsonObject& config) {
  refuse_true(config, {"is_decoder", "add_cross_attention"});
  refuse_other(config, "position_embedding_type", "absolute");
  refuse_pruned(config);

  ModelSpec s;
  s.architecture = "bert";
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  s.position = PositionKind::learned;
  s.init_std = init_std_of(config);
  const NormSpec norm{NormKind::layer, NormPlace::post, epsilon_of(config, "layer_norm_eps", 1e-12)};
  s.embedding = {.vocabulary = vocabulary_of(config),
                 .width = s.width,
                 .positions = size_at(config, {"max_position_embeddings"}, kMaxPositions),
                 .types = config.integer("type_vocab_size", 1, kMaxTypes, 2),
                 .norm = norm};

  const Activation activation = activation_of(config, "hidden_act", "gelu");
  const BlockSpec block{
      .attention = plain_attention(config, "num_attention_heads", s.width),
      .mlp = {.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth), .activation = activation},
      .norm = norm};
  repeat_block(s, block, size_at(config, {"num_hidden_layers"}, kMaxLayers));

  if (promises_head(config, {"ForMaskedLM", "ForPreTraining"}))
    s.output = {.kind = HeadKind::transformed,
                .vocabulary = s.embedding.vocabulary,
                .width = s.width,
                .tied = config.boolean("tie_word_embeddings", true),
                .bias = true,
                .activation = activation,
                .norm = norm};
  return s;
}

WeightMap weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"embeddings.word_embeddings.weight"});
  list.add("embed.W_pos", {"embeddings.position_embeddings.weight"});
  list.add("embed.W_type", {"embeddings.token_type_embeddings.weight"});
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
  list.linear("unembed.", "T", "cls.predictions.transform.dense", {.outside_base = true});
  list.norm("unembed.ln", "cls.predictions.transform.LayerNorm", true);
  list.vocabulary(s, "embeddings.word_embeddings.weight", "cls.predictions.decoder.weight");
  list.add("unembed.b_U",
           {.tensor = "cls.predictions.bias", .outside_base = true, .other = "cls.predictions.decoder.bias"});
  return list.take(s);
}

}  // namespace

extern const Architecture arch_bert{.name = "bert",
                                    .summary = "BERT, MiniLM: post-norm encoder",
                                    .model_types = {"bert"},
                                    .prefix = "bert.",
                                    .anchor = "embeddings.word_embeddings.weight",
                                    .spec = spec,
                                    .weights = weights};

}  // namespace rankscope
