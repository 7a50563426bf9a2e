// Llama and what kept its shape, Mistral and Qwen2: pre-norm causal decoders with RMS norms, rotary
// positions, gated MLPs and, mostly, fewer key and value heads than query heads.
#include "checkpoint/architecture.h"
#include "checkpoint/config.h"
#include "checkpoint/rope.h"
#include "checkpoint/weight_list.h"

namespace rankscope {
namespace {

AttentionSpec attention(const JsonObject& config, const std::string& model_type, int64_t width) {
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
  a.d_qk = config.integer("head_dim", 1, kMaxHeadWidth, width / a.heads);
  if (a.d_qk % 2 != 0 || a.d_qk > kMaxHeadWidth)
    throw Error(fmt::format("the head width is {}, but rotary positions need an even one up to {}", a.d_qk,
                            kMaxHeadWidth))
        .in(config.place())
        .hint("check head_dim, or hidden_size and num_attention_heads");
  a.d_v = a.d_qk;
  a.scale = 1.0 / std::sqrt(static_cast<double>(a.d_qk));
  a.causal = true;
  a.rotary_frequencies = rotary_frequencies(config, a.d_qk);
  const bool all_biases = model_type == "llama" && config.boolean("attention_bias", false);
  a.bias = model_type == "qwen2" || all_biases;
  a.output_bias = all_biases;
  return a;
}

// The window of each block, 0 where it sees everything.
std::vector<int64_t> windows(const JsonObject& config, const std::string& model_type, int64_t depth) {
  std::vector<int64_t> out(static_cast<size_t>(depth), 0);
  if (model_type == "llama") return out;
  if (model_type == "qwen2" && !config.boolean("use_sliding_window", false)) return out;
  if (config.mentions("sliding_window") && !config.has("sliding_window")) return out;  // null: none
  const int64_t window = config.integer("sliding_window", 1, int64_t{1} << 40, 4096);
  const int64_t first =
      model_type == "qwen2" ? config.integer("max_window_layers", 0, int64_t{1} << 40, 28) : 0;
  for (int64_t i = first; i < depth; ++i) out[static_cast<size_t>(i)] = window;
  if (!config.has("layer_types")) return out;

  const Json& types = config.at("layer_types");
  if (!types.is_array() || types.size() != out.size())
    throw Error(fmt::format("\"layer_types\" should list {} names", depth)).in(config.place());
  for (size_t i = 0; i < out.size(); ++i) {
    if (types[i] != "full_attention" && types[i] != "sliding_attention")
      throw Error(fmt::format("\"layer_types\" holds {}, which is not supported",
                              printable(types[i].dump(-1, ' ', true, Json::error_handler_t::replace))))
          .in(config.place())
          .hint("full_attention or sliding_attention");
    out[i] = types[i] == "sliding_attention" ? window : 0;
  }
  return out;
}

ModelSpec spec(const JsonObject& config) {
  refuse_pruned(config);
  const std::string model_type = model_type_of(config);
  ModelSpec s;
  s.architecture = "llama";
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  s.position = PositionKind::rotary;
  s.init.std = init_std_of(config);
  s.embedding = {.vocabulary = vocabulary_of(config), .width = s.width};
  s.final_norm = {NormKind::rms, epsilon_of(config, "rms_norm_eps", 1e-6)};

  const BlockSpec block =
      classic_block(NormPlace::pre, s.final_norm, attention(config, model_type, s.width), "gated_mlp",
                    {.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth),
                     .activation = activation_of(config, "hidden_act", "silu"),
                     .bias = model_type == "llama" && config.boolean("mlp_bias", false)});
  const int64_t depth = size_at(config, {"num_hidden_layers"}, kMaxLayers);
  const std::vector<int64_t> window = windows(config, model_type, depth);
  repeat_block(s, block, depth);
  for (size_t i = 0; i < s.blocks.size(); ++i) s.blocks[i].attention().window = window[i];

  if (promises_head(config, {"ForCausalLM"}))
    s.output = {.kind = HeadKind::linear,
                .vocabulary = s.embedding.vocabulary,
                .width = s.width,
                .tied = config.boolean("tie_word_embeddings", false)};
  return s;
}

WeightMap weights(const ModelSpec& s) {
  WeightList list;
  list.add("embed.W_E", {"embed_tokens.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    list.norm(b + "ln1", layer + "input_layernorm");
    list.linear(b + "attn.", "Q", layer + "self_attn.q_proj");
    list.linear(b + "attn.", "K", layer + "self_attn.k_proj");
    list.linear(b + "attn.", "V", layer + "self_attn.v_proj");
    list.linear(b + "attn.", "O", layer + "self_attn.o_proj");
    list.norm(b + "ln2", layer + "post_attention_layernorm");
    list.linear(b + "mlp.", "in", layer + "mlp.up_proj");
    list.linear(b + "mlp.", "gate", layer + "mlp.gate_proj");
    list.linear(b + "mlp.", "out", layer + "mlp.down_proj");
  }
  list.norm("ln_final", "norm");
  list.vocabulary(s, "embed_tokens.weight", "lm_head.weight");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_llama{
    .name = "llama",
    .summary = "Llama, Mistral, Qwen2: pre-norm causal decoder, rotary positions",
    .model_types = {"llama", "mistral", "qwen2"},
    .prefix = "model.",
    .anchor = "embed_tokens.weight",
    .spec = spec,
    .weights = weights};

}  // namespace rankscope
