// DistilBERT: BERT's shape at half the depth, without token types and under names of its own.
#include "checkpoint/architecture.h"
#include "checkpoint/bert_encoder.h"

namespace rankscope {
namespace {

ModelSpec distilbert_spec(const JsonObject& config) {
  refuse_pruned(config);
  ModelSpec s;
  s.architecture = "distilbert";
  s.width = size_at(config, {"dim", "hidden_size"}, kMaxWidth);
  s.position = PositionKind::learned;
  s.init.std = init_std_of(config);
  const NormSpec norm{NormKind::layer, 1e-12};  // not in the config
  s.embedding = {.vocabulary = vocabulary_of(config),
                 .width = s.width,
                 .positions = size_at(config, {"max_position_embeddings"}, kMaxPositions),
                 .norm = norm};
  const char* heads = key_of(config, {"n_heads", "num_attention_heads"});
  const Activation activation = activation_of(config, "activation", "gelu");
  const BlockSpec block =
      classic_block(NormPlace::post, norm, plain_attention(config, heads, s.width), "mlp",
                    {.width = size_at(config, {"hidden_dim", "intermediate_size"}, kMaxMlpWidth),
                     .activation = activation});
  repeat_block(s, block, size_at(config, {"n_layers", "num_hidden_layers"}, kMaxLayers));
  if (promises_head(config, {"ForMaskedLM"})) s.output = masked_head(config, s, activation);
  return s;
}

WeightMap distilbert_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {.tensor = "embeddings.word_embeddings.weight"});
  list.add("embed.W_pos", {.tensor = "embeddings.position_embeddings.weight"});
  list.norm("embed.ln", "embeddings.LayerNorm");
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("transformer.layer.{}.", i);
    list.linear(b + "attn.", "Q", layer + "attention.q_lin");
    list.linear(b + "attn.", "K", layer + "attention.k_lin");
    list.linear(b + "attn.", "V", layer + "attention.v_lin");
    list.linear(b + "attn.", "O", layer + "attention.out_lin");
    list.norm(b + "ln1", layer + "sa_layer_norm");
    list.linear(b + "mlp.", "in", layer + "ffn.lin1");
    list.linear(b + "mlp.", "out", layer + "ffn.lin2");
    list.norm(b + "ln2", layer + "output_layer_norm");
  }
  list.linear("unembed.", "T", "vocab_transform", {.outside_base = true});
  list.norm("unembed.ln", "vocab_layer_norm", true);
  list.vocabulary(s, "embeddings.word_embeddings.weight", "vocab_projector.weight");
  list.add("unembed.b_U", {.tensor = "vocab_projector.bias", .outside_base = true});
  return list.take(s);
}

}  // namespace

extern const Architecture arch_distilbert{.name = "distilbert",
                                          .summary = "DistilBERT: post-norm encoder",
                                          .model_types = {"distilbert"},
                                          .prefix = "distilbert.",
                                          .anchor = "embeddings.word_embeddings.weight",
                                          .spec = distilbert_spec,
                                          .weights = distilbert_weights};

}  // namespace rankscope
