// What the decoders of Llama's shape share in config.json and in their tensors: grouped key and value heads,
// layers that see a window or everything, gated MLPs, a linear head.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/rope.h"
#include "checkpoint/weight_list.h"

namespace rankscope {

/// A causal attention without biases: heads, key and value heads, their width and the usual scale.
inline AttentionSpec grouped_attention(const JsonObject& config, int64_t width) {
  AttentionSpec a;
  a.heads = config.integer("num_attention_heads", 1, kMaxHeads);
  a.kv_heads = config.integer("num_key_value_heads", 1, kMaxHeads, a.heads);
  if (a.heads % a.kv_heads != 0)
    throw Error(
        fmt::format("\"num_key_value_heads\" is {}, which does not divide the {} heads", a.kv_heads, a.heads))
        .in(config.place());
  if (!config.has("head_dim") && width % a.heads != 0)
    throw Error(
        fmt::format("\"num_attention_heads\" is {}, which does not divide the width {}", a.heads, width))
        .in(config.place());
  a.d_qk = a.d_v = config.integer("head_dim", 1, kMaxHeadWidth, width / a.heads);
  if (a.d_qk > kMaxHeadWidth) throw odd_head_width(a.d_qk, config);
  a.scale = 1.0 / std::sqrt(static_cast<double>(a.d_qk));
  a.causal = true;
  a.bias = a.output_bias = false;
  return a;
}

/// Biases on the attention's four maps where the config has switched them on.
inline void set_biases(AttentionSpec& a, const JsonObject& config) {
  a.bias = a.output_bias = config.boolean("attention_bias", false);
}

/// Words, a width and rotary positions; blocks and head are still to come.
inline ModelSpec rotary_decoder(const JsonObject& config, const char* architecture) {
  refuse_pruned(config);
  ModelSpec s;
  s.architecture = architecture;
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  s.position = PositionKind::rotary;
  s.init.std = init_std_of(config);
  s.embedding = {.vocabulary = vocabulary_of(config), .width = s.width};
  return s;
}

inline NormSpec rms_of(const JsonObject& config, double otherwise) {
  return {NormKind::rms, epsilon_of(config, "rms_norm_eps", otherwise)};
}

inline MlpSpec gated_mlp_of(const JsonObject& config, const char* activation_key = "hidden_act",
                            const char* activation = "silu") {
  return {.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth),
          .activation = activation_of(config, activation_key, activation),
          .bias = config.boolean("mlp_bias", false)};
}

inline int64_t depth_of(const JsonObject& config) {
  return size_at(config, {"num_hidden_layers"}, kMaxLayers);
}

/// A vocabulary matrix behind the last block, where the config promises one.
inline void add_linear_head(ModelSpec& s, const JsonObject& config, bool tied_otherwise, bool bias = false) {
  if (!promises_head(config, {"ForCausalLM"})) return;
  s.output = {.kind = HeadKind::linear,
              .vocabulary = s.embedding.vocabulary,
              .width = s.width,
              .tied = config.boolean("tie_word_embeddings", tied_otherwise),
              .bias = bias};
}

/// "full_attention" or "sliding_attention" for every layer: the config's list, or what `slides` says where it
/// has none.
template <class Slides>
std::vector<std::string> layer_types(const JsonObject& config, int64_t depth, Slides slides) {
  const auto count = static_cast<size_t>(depth);
  std::vector<std::string> out(count, "full_attention");
  if (!config.has("layer_types")) {
    for (size_t i = 0; i < count; ++i)
      if (slides(static_cast<int64_t>(i))) out[i] = "sliding_attention";
    return out;
  }
  const Json& types = config.at("layer_types");
  if (!types.is_array() || types.size() != count)
    throw Error(fmt::format("\"layer_types\" should list {} names", depth)).in(config.place());
  for (size_t i = 0; i < count; ++i) {
    if (types[i] != "full_attention" && types[i] != "sliding_attention")
      throw Error(fmt::format("\"layer_types\" holds {}, which is not supported",
                              printable(types[i].dump(-1, ' ', true, Json::error_handler_t::replace))))
          .in(config.place())
          .hint("full_attention or sliding_attention");
    out[i] = types[i].get<std::string>();
  }
  return out;
}

/// The window of sliding layers; 0 where the config says null.
inline int64_t window_of(const JsonObject& config, int64_t otherwise) {
  if (config.mentions("sliding_window") && !config.has("sliding_window")) return 0;
  return config.integer("sliding_window", 0, int64_t{1} << 40, otherwise);
}

inline void set_windows(ModelSpec& s, const std::vector<std::string>& types, int64_t window) {
  for (size_t i = 0; i < s.blocks.size(); ++i)
    s.blocks[i].attention().window = types[i] == "sliding_attention" ? window : 0;
}

/// The maps of an attention under Llama's names.
inline void attention_weights(WeightList& list, const std::string& b, const std::string& module,
                              const char* output = "o_proj") {
  list.linear(b + "attn.", "Q", module + ".q_proj");
  list.linear(b + "attn.", "K", module + ".k_proj");
  list.linear(b + "attn.", "V", module + ".v_proj");
  list.linear(b + "attn.", "O", module + "." + output);
}

inline void gated_mlp_weights(WeightList& list, const std::string& b, const std::string& module) {
  list.linear(b + "mlp.", "in", module + ".up_proj");
  list.linear(b + "mlp.", "gate", module + ".gate_proj");
  list.linear(b + "mlp.", "out", module + ".down_proj");
}

/// Every tensor under the name Llama gave it, with norms on queries and keys where a spec has them. What
/// Llama calls post_attention_layernorm stands before its MLP; where norms stand inside the branches, it is
/// the one inside attention, and the others have names of their own. `plus` is added to the gains.
inline void decoder_weights(WeightList& list, const ModelSpec& s, double plus = 0) {
  const auto norm = [&](const std::string& to, const std::string& from) { list.norm(to, from, false, plus); };
  list.add("embed.W_E", {"embed_tokens.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    const bool inside = s.blocks[static_cast<size_t>(i)].branches.front().inside.there();
    norm(b + "ln1", layer + "input_layernorm");
    attention_weights(list, b, layer + "self_attn");
    norm(b + "attn.q_norm", layer + "self_attn.q_norm");
    norm(b + "attn.k_norm", layer + "self_attn.k_norm");
    norm(b + (inside ? "ln1_post" : "ln2"), layer + "post_attention_layernorm");
    if (inside) norm(b + "ln2", layer + "pre_feedforward_layernorm");
    gated_mlp_weights(list, b, layer + "mlp");
    norm(b + "ln2_post", layer + "post_feedforward_layernorm");
  }
  norm("ln_final", "norm");
  list.vocabulary(s, "embed_tokens.weight", "lm_head.weight");
}

inline WeightMap llama_weights(const ModelSpec& s) {
  WeightList list;
  decoder_weights(list, s);
  return list.take(s);
}

/// Queries, keys and values in one tensor, head by head: `heads` groups of a query, a key and a value head.
inline void interleaved_qkv(WeightList& list, const std::string& b, const std::string& module,
                            const AttentionSpec& a) {
  int64_t row = 0;
  for (const char* letter : {"Q", "K", "V"}) {
    list.linear(b + "attn.", letter, module,
                {.first_row = row, .stored_rows = 3 * a.heads * a.d_qk, .groups = a.heads});
    row += a.d_qk;
  }
}

/// Queries, keys and values in one tensor, one behind another.
inline void stacked_qkv(WeightList& list, const std::string& b, const std::string& module,
                        const AttentionSpec& a) {
  const int64_t q = a.heads * a.d_qk, kv = a.kv_heads * a.d_qk;
  list.linear(b + "attn.", "Q", module, {.first_row = 0, .stored_rows = q + 2 * kv});
  list.linear(b + "attn.", "K", module, {.first_row = q, .stored_rows = q + 2 * kv});
  list.linear(b + "attn.", "V", module, {.first_row = q + kv, .stored_rows = q + 2 * kv});
}

}  // namespace rankscope
