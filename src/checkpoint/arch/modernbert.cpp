// ModernBERT: a pre-norm encoder with rotary positions and gated MLPs. Every third layer sees all tokens, the
// others a window to both sides, turned by another base. The first block reads the embedding, whose norm
// serves it, too.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

void set_layer(AttentionSpec& a, const JsonObject& config, const std::string& type) {
  const bool local = type == "sliding_attention";
  // The window counts both sides: half of it to either, and the token itself.
  a.window = local ? config.integer("local_attention", 1, kMaxPositions, 128) / 2 + 1 : 0;
  // Where the local base is null, local layers turn by the global one.
  const bool own = local && !(config.mentions("local_rope_theta") && !config.has("local_rope_theta"));
  const double theta =
      config.number(own ? "local_rope_theta" : "global_rope_theta", 1.0, 1e15, own ? 10000.0 : 160000.0);
  if (config.has("rope_parameters")) return set_rotation(a, config, a.d_qk, type, {.theta = theta});
  a.rotary_frequencies = plain_frequencies(theta, a.d_qk);
}

ModelSpec modernbert_spec(const JsonObject& config) {
  ModelSpec s = rotary_decoder(config, "modernbert");
  s.init.std = config.number("initializer_range", 0.0, 1e3, 0.02);
  const NormSpec norm{.kind = NormKind::layer,
                      .epsilon = epsilon_of(config, "norm_eps", 1e-5),
                      .bias = config.boolean("norm_bias", false)};
  s.embedding.norm = s.final_norm = norm;
  AttentionSpec attention = plain_attention(config, "num_attention_heads", s.width);
  attention.bias = attention.output_bias = config.boolean("attention_bias", false);
  const BlockSpec block = classic_block(NormPlace::pre, norm, attention, "gated_mlp",
                                        gated_mlp_of(config, "hidden_activation", "gelu"));
  const int64_t depth = depth_of(config);
  repeat_block(s, block, depth);
  s.blocks.front().attention_branch()->before = {};
  const int64_t every = config.integer("global_attn_every_n_layers", 1, kMaxLayers, 3);
  const auto types = layer_types(config, depth, [&](int64_t i) { return i % every != 0; });
  for (size_t i = 0; i < s.blocks.size(); ++i) set_layer(s.blocks[i].attention(), config, types[i]);
  s.init.cut = config.number("initializer_cutoff_factor", 0.5, 1e3, 2.0);
  const double written = s.init.std / std::sqrt(2.0 * static_cast<double>(depth));
  s.init.stds = {{"attn.W_O", written}, {"mlp.W_out", written}, {"unembed.W_T", written}};
  if (!config.boolean("tie_word_embeddings", true)) s.init.stds["unembed.W_U"] = written;
  if (promises_head(config, {"ForMaskedLM"}))
    s.output = {.kind = HeadKind::transformed,
                .vocabulary = s.embedding.vocabulary,
                .width = s.width,
                .tied = config.boolean("tie_word_embeddings", true),
                .bias = config.boolean("decoder_bias", true),
                .map_bias = config.boolean("classifier_bias", false),
                .activation = activation_of(config, "classifier_activation", "gelu"),
                .norm = norm};
  return s;
}

WeightMap modernbert_weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"embeddings.tok_embeddings.weight"});
  list.norm("embed.ln", "embeddings.norm");
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const BlockSpec& block = s.blocks[static_cast<size_t>(i)];
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    list.norm(b + "ln1", layer + "attn_norm");
    stacked_qkv(list, b, layer + "attn.Wqkv", block.attention());
    list.linear(b + "attn.", "O", layer + "attn.Wo");
    list.norm(b + "ln2", layer + "mlp_norm");
    const int64_t hidden = block.mlp_branch()->mlp()->width;
    list.linear(b + "mlp.", "gate", layer + "mlp.Wi", {.stored_rows = 2 * hidden});
    list.linear(b + "mlp.", "in", layer + "mlp.Wi", {.first_row = hidden, .stored_rows = 2 * hidden});
    list.linear(b + "mlp.", "out", layer + "mlp.Wo");
  }
  list.norm("ln_final", "final_norm");
  list.linear("unembed.", "T", "head.dense", {.outside_base = true});
  list.norm("unembed.ln", "head.norm", true);
  list.vocabulary(s, "embeddings.tok_embeddings.weight", "decoder.weight");
  list.add("unembed.b_U", {.tensor = "decoder.bias", .outside_base = true});
  return list.take(s);
}

}  // namespace

extern const Architecture arch_modernbert{
    .name = "modernbert",
    .summary = "ModernBERT: pre-norm encoder, rotary positions, windows to both sides on two layers of three",
    .model_types = {"modernbert"},
    .prefix = "model.",
    .anchor = "embeddings.tok_embeddings.weight",
    .spec = modernbert_spec,
    .weights = modernbert_weights};

}  // namespace rankscope
