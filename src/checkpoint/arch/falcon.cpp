// Falcon in its three forms. 7B: one key and value head, attention and MLP side by side behind one norm. 40B
// and later ("new decoder architecture"): groups of heads, side by side behind one norm or two. RW: in turn,
// with ALiBi instead of rotary positions.
#include "checkpoint/alibi.h"
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

AttentionSpec attention(const JsonObject& config, int64_t width) {
  AttentionSpec a = plain_attention(config, key_of(config, {"num_attention_heads", "n_head"}), width);
  const bool grouped = config.boolean("new_decoder_architecture", false);
  a.kv_heads = grouped                               ? config.integer("num_kv_heads", 1, a.heads, a.heads)
               : config.boolean("multi_query", true) ? 1
                                                     : a.heads;
  if (a.heads % a.kv_heads != 0)
    throw Error(
        fmt::format("\"num_kv_heads\" is {}, which does not divide the {} heads", a.kv_heads, a.heads))
        .in(config.place());
  a.causal = true;
  a.bias = a.output_bias = config.boolean("bias", false);
  if (config.boolean("alibi", false)) {
    a.alibi = alibi_slopes(a.heads);
    a.alibi_rounded = true;
  } else {
    set_rotation(a, config, a.d_qk);
  }
  return a;
}

ModelSpec falcon_spec(const JsonObject& config) {
  refuse_pruned(config);
  ModelSpec s;
  s.architecture = "falcon";
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  const AttentionSpec a = attention(config, s.width);
  s.position = a.alibi.empty() ? PositionKind::rotary : PositionKind::alibi;
  s.init.std = init_std_of(config);
  s.embedding = {.vocabulary = vocabulary_of(config), .width = s.width, .padding_counts = a.alibi.empty()};
  s.final_norm = {NormKind::layer, epsilon_of(config, "layer_norm_epsilon", 1e-5)};
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, a, "mlp",
                                  {.width = config.integer("ffn_hidden_size", 1, kMaxMlpWidth, 4 * s.width),
                                   .activation = activation_of(config, "activation", "gelu"),
                                   .bias = a.bias});
  const bool grouped = config.boolean("new_decoder_architecture", false);
  block.parallel = grouped || config.boolean("parallel_attn", true);
  if (block.parallel && config.integer("num_ln_in_parallel_attn", 1, 2, grouped ? 2 : 1) == 1)
    block.branches[1].norm_name = block.branches[0].norm_name;
  repeat_block(s, block, size_at(config, {"num_hidden_layers", "n_layer"}, kMaxLayers));
  add_linear_head(s, config, true);
  return s;
}

// One tensor: a group of query heads, a key head and a value head for each key and value head.
void fused_qkv(WeightList& list, const std::string& b, const std::string& module, const AttentionSpec& a) {
  const int64_t queries = a.heads / a.kv_heads * a.d_qk;
  int64_t row = 0;
  for (const auto& [letter, rows] : {std::pair{"Q", queries}, {"K", a.d_qk}, {"V", a.d_qk}}) {
    list.linear(b + "attn.", letter, module,
                {.first_row = row, .stored_rows = a.kv_heads * (queries + 2 * a.d_qk), .groups = a.kv_heads});
    row += rows;
  }
}

WeightMap falcon_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"word_embeddings.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const BlockSpec& block = s.blocks[static_cast<size_t>(i)];
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("h.{}.", i);
    const BranchSpec* mlp = block.mlp_branch();
    const bool two = block.parallel && mlp && mlp->norm_name != block.attention_branch()->norm_name;
    list.norm(b + "ln1", layer + (two ? "ln_attn" : "input_layernorm"));
    list.norm(b + "ln2", layer + (two ? "ln_mlp" : "post_attention_layernorm"));
    fused_qkv(list, b, layer + "self_attention.query_key_value", block.attention());
    list.linear(b + "attn.", "O", layer + "self_attention.dense");
    list.linear(b + "mlp.", "in", layer + "mlp.dense_h_to_4h");
    list.linear(b + "mlp.", "out", layer + "mlp.dense_4h_to_h");
  }
  list.norm("ln_final", "ln_f");
  list.vocabulary(s, "word_embeddings.weight", "lm_head.weight");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_falcon{
    .name = "falcon",
    .summary = "Falcon: causal decoder, few key and value heads, side by side or in turn, rotary or ALiBi",
    .model_types = {"falcon"},
    .prefix = "transformer.",
    .anchor = "word_embeddings.weight",
    .spec = falcon_spec,
    .weights = falcon_weights};

}  // namespace rankscope
