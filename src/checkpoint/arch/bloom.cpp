// BLOOM: a pre-norm decoder whose only positions are ALiBi's slopes, with a norm on its embeddings and, by
// choice, skips that take what the norms made.
#include "checkpoint/alibi.h"
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

ModelSpec bloom_spec(const JsonObject& config) {
  refuse_pruned(config);
  ModelSpec s;
  s.architecture = "bloom";
  s.width = size_at(config, {"hidden_size", "n_embed"}, kMaxWidth);
  s.position = PositionKind::alibi;
  s.init.std = init_std_of(config);
  const NormSpec norm{NormKind::layer, epsilon_of(config, "layer_norm_epsilon", 1e-5)};
  s.embedding = {
      .vocabulary = vocabulary_of(config), .width = s.width, .padding_counts = false, .norm = norm};
  s.final_norm = norm;
  AttentionSpec attention =
      plain_attention(config, key_of(config, {"n_head", "num_attention_heads"}), s.width);
  attention.causal = true;
  attention.alibi = alibi_slopes(attention.heads);
  BlockSpec block = classic_block(NormPlace::pre, norm, attention, "mlp",
                                  {.width = 4 * s.width, .activation = Activation::gelu_bloom});
  for (BranchSpec& branch : block.branches)
    branch.skip_normed = config.boolean("apply_residual_connection_post_layernorm", false);
  repeat_block(s, block, size_at(config, {"n_layer", "num_hidden_layers"}, kMaxLayers));
  add_linear_head(s, config, true);
  return s;
}

WeightMap bloom_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"word_embeddings.weight"});
  list.norm("embed.ln", "word_embeddings_layernorm");
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("h.{}.", i);
    list.norm(b + "ln1", layer + "input_layernorm");
    interleaved_qkv(list, b, layer + "self_attention.query_key_value",
                    s.blocks[static_cast<size_t>(i)].attention());
    list.linear(b + "attn.", "O", layer + "self_attention.dense");
    list.norm(b + "ln2", layer + "post_attention_layernorm");
    list.linear(b + "mlp.", "in", layer + "mlp.dense_h_to_4h");
    list.linear(b + "mlp.", "out", layer + "mlp.dense_4h_to_h");
  }
  list.norm("ln_final", "ln_f");
  list.vocabulary(s, "word_embeddings.weight", "lm_head.weight");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_bloom{.name = "bloom",
                                     .summary = "BLOOM: pre-norm causal decoder with ALiBi",
                                     .model_types = {"bloom"},
                                     .prefix = "transformer.",
                                     .anchor = "word_embeddings.weight",
                                     .spec = bloom_spec,
                                     .weights = bloom_weights};

}  // namespace rankscope
