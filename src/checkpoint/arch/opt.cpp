// OPT: a decoder with learned positions that start at 2, norms before the branches or, in one size, behind
// them, and embeddings that may be narrower than the stream.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

ModelSpec opt_spec(const JsonObject& config) {
  refuse_pruned(config);
  ModelSpec s;
  s.architecture = "opt";
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  s.position = PositionKind::learned;
  s.init.std = config.number("init_std", 0.0, 1e3, 0.02);
  const int64_t narrow = config.integer("word_embed_proj_dim", 1, kMaxWidth, s.width);
  s.embedding = {.vocabulary = vocabulary_of(config),
                 .width = narrow,
                 .map = narrow != s.width,
                 .map_bias = false,
                 .map_first = narrow != s.width,
                 .positions = size_at(config, {"max_position_embeddings"}, kMaxPositions) + 2,
                 .position_offset = 2,
                 .padding_counts = false};
  const bool learned = config.boolean("layer_norm_elementwise_affine", true);
  const NormSpec norm{.kind = NormKind::layer, .epsilon = 1e-5, .gain = learned, .bias = learned};
  const bool before = config.boolean("do_layer_norm_before", true),
             biased = config.boolean("enable_bias", true);
  if (before && !config.boolean("_remove_final_layer_norm", false)) s.final_norm = norm;
  AttentionSpec attention = plain_attention(config, "num_attention_heads", s.width);
  attention.causal = true;
  attention.bias = attention.output_bias = biased;
  const BlockSpec block = classic_block(before ? NormPlace::pre : NormPlace::post, norm, attention, "mlp",
                                        {.width = size_at(config, {"ffn_dim"}, kMaxMlpWidth),
                                         .activation = activation_of(config, "activation_function", "relu"),
                                         .bias = biased});
  repeat_block(s, block, depth_of(config));
  add_linear_head(s, config, true);
  if (s.output.kind != HeadKind::none && narrow != s.width) {
    s.output.kind = HeadKind::transformed;
    s.output.width = narrow;
    s.output.map_bias = false;
    s.output.activation = Activation::identity;
  }
  return s;
}

WeightMap opt_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"decoder.embed_tokens.weight"});
  list.add("embed.W_pos", {"decoder.embed_positions.weight"});
  list.add("embed.W_map", {"decoder.project_in.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("decoder.layers.{}.", i);
    list.norm(b + "ln1", layer + "self_attn_layer_norm");
    attention_weights(list, b, layer + "self_attn", "out_proj");
    list.norm(b + "ln2", layer + "final_layer_norm");
    list.linear(b + "mlp.", "in", layer + "fc1");
    list.linear(b + "mlp.", "out", layer + "fc2");
  }
  list.norm("ln_final", "decoder.final_layer_norm");
  list.add("unembed.W_T", {"decoder.project_out.weight"});
  list.vocabulary(s, "decoder.embed_tokens.weight", "lm_head.weight");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_opt{
    .name = "opt",
    .summary = "OPT: causal decoder, learned positions, norms before or behind",
    .model_types = {"opt"},
    .prefix = "model.",
    .anchor = "decoder.embed_tokens.weight",
    .spec = opt_spec,
    .weights = opt_weights};

}  // namespace rankscope
