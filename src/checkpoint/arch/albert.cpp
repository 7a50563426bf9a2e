// ALBERT: a narrow embedding mapped to the model's width, and few sets of block weights used again and again.
// Layer i of the config belongs to a group and runs all blocks of that group, so the pass has layers * inner
// blocks.
#include "checkpoint/architecture.h"
#include "checkpoint/bert_encoder.h"

namespace rankscope {
namespace {

void share_blocks(ModelSpec& s, const JsonObject& config, const BlockSpec& block) {
  const int64_t layers = size_at(config, {"num_hidden_layers"}, kMaxLayers);
  const int64_t groups = config.integer("num_hidden_groups", 1, layers, 1);
  const int64_t inner = config.integer("inner_group_num", 1, kMaxLayers / layers, 1);
  // Each group running once, the spec could not tell groups from the blocks of a group (and nobody trains
  // that).
  if (groups == layers && inner > 1)
    throw Error(fmt::format("\"inner_group_num\": {} is not supported with as many groups as layers", inner))
        .in(config.place());
  repeat_block(s, block, layers * inner);
  s.stored_blocks = groups * inner;
  const double layers_per_group = static_cast<double>(layers) / static_cast<double>(groups);
  for (int64_t i = 0; i < layers * inner; ++i) {
    const auto group = static_cast<int64_t>(static_cast<double>(i / inner) / layers_per_group);
    s.blocks[static_cast<size_t>(i)].weights = group * inner + i % inner;
  }
}

ModelSpec albert_spec(const JsonObject& config) {
  refuse_true(config, {"is_decoder", "add_cross_attention"});
  refuse_other(config, "position_embedding_type", "absolute");
  refuse_pruned(config);

  ModelSpec s;
  s.architecture = "albert";
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  s.position = PositionKind::learned;
  s.init.std = init_std_of(config);
  const NormSpec norm{NormKind::layer, epsilon_of(config, "layer_norm_eps", 1e-12)};
  s.embedding = {.vocabulary = vocabulary_of(config),
                 .width = size_at(config, {"embedding_size"}, kMaxWidth),
                 .map = true,
                 .positions = size_at(config, {"max_position_embeddings"}, kMaxPositions),
                 .types = config.integer("type_vocab_size", 1, kMaxTypes, 2),
                 .norm = norm};
  const Activation activation = activation_of(config, "hidden_act", "gelu_new");
  share_blocks(
      s, config,
      classic_block(
          NormPlace::post, norm, plain_attention(config, "num_attention_heads", s.width), "mlp",
          {.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth), .activation = activation}));
  if (promises_head(config, {"ForMaskedLM", "ForPreTraining"})) s.output = masked_head(config, s, activation);
  return s;
}

// How many blocks each group stores: the first layer runs them in order, then the second comes back to block
// 0.
int64_t blocks_per_group(const ModelSpec& s) {
  for (int64_t i = 1; i < s.depth(); ++i)
    if (s.blocks[static_cast<size_t>(i)].weights == 0) return i;
  return 1;
}

WeightMap albert_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {.tensor = "embeddings.word_embeddings.weight"});
  list.add("embed.W_pos", {.tensor = "embeddings.position_embeddings.weight"});
  list.add("embed.W_type", {.tensor = "embeddings.token_type_embeddings.weight"});
  list.norm("embed.ln", "embeddings.LayerNorm");
  list.linear("embed.", "map", "encoder.embedding_hidden_mapping_in");
  const int64_t inner = blocks_per_group(s);
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i);
    const std::string layer =
        fmt::format("encoder.albert_layer_groups.{}.albert_layers.{}.", i / inner, i % inner);
    list.linear(b + "attn.", "Q", layer + "attention.query");
    list.linear(b + "attn.", "K", layer + "attention.key");
    list.linear(b + "attn.", "V", layer + "attention.value");
    list.linear(b + "attn.", "O", layer + "attention.dense");
    list.norm(b + "ln1", layer + "attention.LayerNorm");
    list.linear(b + "mlp.", "in", layer + "ffn");
    list.linear(b + "mlp.", "out", layer + "ffn_output");
    list.norm(b + "ln2", layer + "full_layer_layer_norm");
  }
  list.linear("unembed.", "T", "predictions.dense", {.outside_base = true});
  list.norm("unembed.ln", "predictions.LayerNorm", true);
  list.vocabulary(s, "embeddings.word_embeddings.weight", "predictions.decoder.weight");
  // Untied, the map to the vocabulary has a bias of its own; elsewhere both names are the same numbers.
  list.add("unembed.b_U",
           {.tensor = "predictions.decoder.bias", .outside_base = true, .other = "predictions.bias"});
  return list.take(s);
}

}  // namespace

extern const Architecture arch_albert{.name = "albert",
                                      .summary = "ALBERT: post-norm encoder with shared blocks",
                                      .model_types = {"albert"},
                                      .prefix = "albert.",
                                      .anchor = "embeddings.word_embeddings.weight",
                                      .spec = albert_spec,
                                      .weights = albert_weights};

}  // namespace rankscope
