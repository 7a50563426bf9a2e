// XLNet, read in both directions: post-norm, with relative positions and segments inside the attention
// scores. Its mask_emb serves only training.
#include "checkpoint/architecture.h"
#include "checkpoint/config.h"
#include "checkpoint/weight_list.h"

namespace rankscope {
namespace {

ModelSpec xlnet_spec(const JsonObject& config) {
  refuse_other(config, "attn_type", "bi");
  refuse_true(config, {"bi_data"});
  refuse_pruned(config);
  if (config.integer("clamp_len", INT64_MIN, INT64_MAX, -1) > 0)
    refuse(config, "clamp_len", std::to_string(config.integer("clamp_len", INT64_MIN, INT64_MAX)));

  ModelSpec s;
  s.architecture = "xlnet";
  s.width = size_at(config, {"d_model", "hidden_size"}, kMaxWidth);
  s.position = PositionKind::relative;
  s.init.std = init_std_of(config);
  s.embedding = {.vocabulary = vocabulary_of(config), .width = s.width};
  AttentionSpec attention =
      plain_attention(config, key_of(config, {"n_head", "num_attention_heads"}), s.width);
  attention.variant = "relative";
  attention.bias = attention.output_bias = false;
  if (const int64_t d_head = config.integer("d_head", 1, kMaxWidth, attention.d_qk); d_head != attention.d_qk)
    throw Error(fmt::format("\"d_head\" is {}, but the width over the heads is {}", d_head, attention.d_qk))
        .in(config.place());
  const BlockSpec block = classic_block(
      NormPlace::post, {NormKind::layer, epsilon_of(config, "layer_norm_eps", 1e-12)}, attention, "mlp",
      {.width = size_at(config, {"d_inner"}, kMaxMlpWidth),
       .activation = activation_of(config, "ff_activation", "gelu")});
  repeat_block(s, block, size_at(config, {"n_layer", "num_hidden_layers"}, kMaxLayers));
  if (promises_head(config, {"LMHeadModel"}))
    s.output = {.kind = HeadKind::linear,
                .vocabulary = s.embedding.vocabulary,
                .width = s.width,
                .tied = config.boolean("tie_word_embeddings", true),
                .bias = true};
  return s;
}

WeightMap xlnet_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {.tensor = "word_embedding.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const AttentionSpec& a = s.blocks[static_cast<size_t>(i)].attention();
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layer.{}.", i);
    const std::vector<int64_t> by_head{s.width, a.heads, a.d_qk}, bias{a.heads, a.d_qk};
    for (const auto& [letter, tensor] : {std::pair{"Q", "q"}, {"K", "k"}, {"V", "v"}, {"R", "r"}})
      list.add(b + "attn.W_" + letter,
               {.tensor = layer + "rel_attn." + tensor, .transpose = true, .stored_shape = by_head});
    list.add(b + "attn.W_O", {.tensor = layer + "rel_attn.o", .stored_shape = by_head});
    for (const char* name : {"r_w_bias", "r_r_bias", "r_s_bias"})
      list.add(b + "attn." + name, {.tensor = layer + "rel_attn." + name, .stored_shape = bias});
    list.add(b + "attn.seg_embed",
             {.tensor = layer + "rel_attn.seg_embed", .stored_shape = {2, a.heads, a.d_qk}});
    list.norm(b + "ln1", layer + "rel_attn.layer_norm");
    list.linear(b + "mlp.", "in", layer + "ff.layer_1");
    list.linear(b + "mlp.", "out", layer + "ff.layer_2");
    list.norm(b + "ln2", layer + "ff.layer_norm");
  }
  list.vocabulary(s, "word_embedding.weight", "lm_loss.weight");
  list.add("unembed.b_U", {.tensor = "lm_loss.bias", .outside_base = true});
  return list.take(s);
}

}  // namespace

extern const Architecture arch_xlnet{.name = "xlnet",
                                     .summary = "XLNet: post-norm encoder, relative positions",
                                     .model_types = {"xlnet"},
                                     .prefix = "transformer.",
                                     .anchor = "word_embedding.weight",
                                     .spec = xlnet_spec,
                                     .weights = xlnet_weights};

}  // namespace rankscope
