// Qwen3-Next and the language model of Qwen3.5: three layers of four keep a state instead of a cache (the
// gated delta rule behind short convolutions, parts/gated_delta_attention.cpp), the fourth is attention with
// normed queries and keys, a quarter of the channels turned, and an output gate whose rows lie beside those
// of the queries. MLPs are mixtures of experts with a shared one that has a gate of its own, or plain. Gains
// are stored as their difference from one, but for the norm inside the delta rule.
//
// Qwen3-Next stores the maps of a delta rule by groups of one key head and its value heads, Qwen3.5 one
// behind another. Folders of Qwen3.5 that read images, too, have the language model's words in text_config.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"
#include "checkpoint/expert_weights.h"

namespace rankscope {
namespace {

bool is_linear(const BlockSpec& block) {
  return block.attention_branch()->part.name == "gated_delta_attention";
}

// Whether each layer keeps a state: the config's list, or all but every n-th.
std::vector<bool> linear_layers(const JsonObject& config, int64_t depth) {
  std::vector<bool> out;
  if (!config.has("layer_types")) {
    const int64_t interval = config.integer("full_attention_interval", 1, kMaxLayers, 4);
    for (int64_t i = 0; i < depth; ++i) out.push_back((i + 1) % interval != 0);
    return out;
  }
  const Json& types = config.at("layer_types");
  if (!types.is_array() || types.size() != static_cast<size_t>(depth))
    throw Error(fmt::format("\"layer_types\" should list {} names", depth)).in(config.place());
  for (const Json& type : types) {
    if (type != "linear_attention" && type != "full_attention")
      throw Error(fmt::format("\"layer_types\" holds {}, which is not supported",
                              printable(type.dump(-1, ' ', true, Json::error_handler_t::replace))))
          .in(config.place())
          .hint("linear_attention or full_attention");
    out.push_back(type == "linear_attention");
  }
  return out;
}

PartSpec full_attention(const JsonObject& config, int64_t width, const NormSpec& norm) {
  AttentionSpec a = grouped_attention(config, width);
  set_biases(a, config);
  set_rotation(a, config, a.d_qk, {}, {.part = 0.25, .partial = true});
  a.qk_norm = norm;
  PartSpec part{"gated_attention", a, {}};
  set_option(part, "bias", a.bias ? 1 : 0);
  return part;
}

PartSpec linear_attention(const JsonObject& config) {
  AttentionSpec a;
  a.variant = "delta:epsilon=1e-06";  // the original's own, whatever its norms have
  a.heads = config.integer("linear_num_value_heads", 1, kMaxHeads, 32);
  a.kv_heads = config.integer("linear_num_key_heads", 1, kMaxHeads, 16);
  if (a.heads % a.kv_heads != 0)
    throw Error(fmt::format("\"linear_num_value_heads\" is {}, which is no multiple of the {} key heads",
                            a.heads, a.kv_heads))
        .in(config.place())
        .hint("check linear_num_value_heads and linear_num_key_heads");
  a.d_qk = config.integer("linear_key_head_dim", 1, kMaxHeadWidth, 128);
  a.d_v = config.integer("linear_value_head_dim", 1, kMaxHeadWidth, 128);
  a.scale = 1.0 / std::sqrt(static_cast<double>(a.d_qk));
  a.causal = true;
  a.bias = a.output_bias = false;
  PartSpec part{"gated_delta_attention", a, {}};
  set_option(part, "kernel", static_cast<double>(config.integer("linear_conv_kernel_dim", 1, 256, 4)));
  return part;
}

PartSpec experts(const JsonObject& config, int64_t count, int64_t active, bool may_choose) {
  PartSpec part{"experts",
                MlpSpec{.width = config.integer("moe_intermediate_size", 1, kMaxMlpWidth, 512),
                        .activation = activation_of(config, "hidden_act", "silu"),
                        .bias = false},
                {}};
  set_option(part, "experts", static_cast<double>(count));
  set_option(part, "active", static_cast<double>(config.integer("num_experts_per_tok", 1, 1024, active)));
  if (may_choose) set_option(part, "normed", config.boolean("norm_topk_prob", true));
  set_option(part, "shared",
             static_cast<double>(config.integer("shared_expert_intermediate_size", 1, kMaxMlpWidth, 512)));
  set_option(part, "shared_gate", 1);
  return part;
}

// What stands in the config of a language model, or in the part of a larger one that says what its language
// model is.
ModelSpec language_model(const JsonObject& config, const std::string& type, bool tied) {
  const bool dense = type == "qwen3_5" || type == "qwen3_5_text", next = type == "qwen3_next";
  refuse_other(config, "hidden_act", "silu");
  ModelSpec s = rotary_decoder(config, "qwen3_next");
  s.final_norm = rms_of(config, 1e-6);
  const int64_t depth = depth_of(config);
  const std::vector<bool> linear = linear_layers(config, depth);
  const int64_t count = dense ? 0 : config.integer("num_experts", 0, 1024, next ? 512 : 256);
  const std::vector<bool> plain = count == 0 ? std::vector<bool>(linear.size(), true)
                                  : next     ? dense_layers(config, depth)
                                             : std::vector<bool>(linear.size(), false);
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, {}, "gated_mlp", {});
  for (size_t i = 0; i < linear.size(); ++i) {
    block.attention_branch()->part =
        linear[i] ? linear_attention(config) : full_attention(config, s.width, s.final_norm);
    block.mlp_branch()->part = plain[i] ? PartSpec{"gated_mlp", gated_mlp_of(config), {}}
                                        : experts(config, count, next ? 10 : 8, next);
    block.mlp_branch()->mlp()->bias = false;
    block.weights = static_cast<int64_t>(i);
    s.blocks.push_back(block);
  }
  s.stored_blocks = depth;
  if (promises_head(config, {"ForCausalLM", "ForConditionalGeneration"}))
    s.output = {
        .kind = HeadKind::linear, .vocabulary = s.embedding.vocabulary, .width = s.width, .tied = tied};
  // The original draws exp(keep_rate) evenly between 0 and 16: the mean of its logarithm is log 16 - 1.
  s.init.constants = {{"attn.keep_bias", 1.0}, {"attn.keep_rate", std::log(16.0) - 1}};
  return s;
}

ModelSpec qwen3_next_spec(const JsonObject& config) {
  const std::string type = model_type_of(config);
  if (!config.has("text_config"))
    return language_model(config, type, config.boolean("tie_word_embeddings", false));
  const JsonObject text(config.at("text_config"), config.place() + ", text_config");
  const JsonObject& ties = config.has("tie_word_embeddings") ? config : text;
  return language_model(text, type, ties.boolean("tie_word_embeddings", false));
}

void gated_attention_weights(WeightList& list, const AttentionSpec& a, const std::string& b,
                             const std::string& module) {
  const int64_t rows = 2 * a.heads * a.d_qk;
  list.linear(b + "attn.", "Q", module + ".q_proj", {.stored_rows = rows, .groups = a.heads});
  list.linear(b + "attn.", "G", module + ".q_proj",
              {.first_row = a.d_qk, .stored_rows = rows, .groups = a.heads});
}

// Where a map of the delta rule is: rows of each group of a fused tensor, or of another one.
Source either(const std::string& fused, int64_t row, int64_t rows, int64_t groups, Source apart) {
  Source source{.tensor = fused, .first_row = row, .stored_rows = rows, .groups = groups};
  source.instead.push_back(std::move(apart));
  return source;
}

void delta_weights(WeightList& list, const BranchSpec& branch, const std::string& b,
                   const std::string& module) {
  const AttentionSpec& a = *branch.attention();
  const auto taps = static_cast<int64_t>(option_of(branch.part, "kernel"));
  const int64_t each = a.heads / a.kv_heads, key = a.d_qk, value = each * a.d_v;  // of one group
  const int64_t keys = a.kv_heads * key, values = a.kv_heads * value, all = 2 * keys + values;
  const std::string attn = b + "attn.", qkvz = module + ".in_proj_qkvz.weight",
                    ba = module + ".in_proj_ba.weight", qkv = module + ".in_proj_qkv.weight";
  int64_t fused = 0, apart = 0;
  for (const auto& [letter, rows, total] :
       {std::tuple{"Q", key, keys}, {"K", key, keys}, {"V", value, values}}) {
    list.add(attn + "W_" + letter, either(qkvz, fused, all + values, a.kv_heads,
                                          {.tensor = qkv, .first_row = apart, .stored_rows = all}));
    list.add(attn + "conv_" + letter, {.tensor = module + ".conv1d.weight",
                                       .first_row = apart,
                                       .stored_rows = all,
                                       .stored_shape = {all, 1, taps}});
    fused += rows;
    apart += total;
  }
  list.add(attn + "W_Z", either(qkvz, fused, all + values, a.kv_heads, {module + ".in_proj_z.weight"}));
  list.add(attn + "W_write", either(ba, 0, 2 * a.heads, a.kv_heads, {module + ".in_proj_b.weight"}));
  list.add(attn + "W_keep", either(ba, each, 2 * a.heads, a.kv_heads, {module + ".in_proj_a.weight"}));
  list.add(attn + "keep_rate", {module + ".A_log"});
  list.add(attn + "keep_bias", {module + ".dt_bias"});
  list.add(attn + "z_norm.w", {module + ".norm.weight"});
  list.add(attn + "W_O", {module + ".out_proj.weight"});
}

WeightMap qwen3_next_weights(const ModelSpec& s) {
  WeightList list;
  decoder_weights(list, s, 1.0);
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const BlockSpec& block = s.blocks[static_cast<size_t>(i)];
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    if (is_linear(block))
      delta_weights(list, *block.attention_branch(), b, layer + "linear_attn");
    else
      gated_attention_weights(list, block.attention(), b, layer + "self_attn");
    list.add(b + "mlp.W_router", {layer + "mlp.gate.weight"});
    expert_weights(list, block, s.width, b, layer + "mlp.experts");
    for (const auto& [letter, name] : {std::pair{"in", "up"}, {"gate", "gate"}, {"out", "down"}})
      list.linear(b + "mlp.shared.", letter, fmt::format("{}mlp.shared_expert.{}_proj", layer, name));
    list.add(b + "mlp.W_shared_gate", {layer + "mlp.shared_expert_gate.weight"});
  }
  return list.take(s);
}

}  // namespace

extern const Architecture arch_qwen3_next{
    .name = "qwen3_next",
    .summary =
        "Qwen3-Next, Qwen3.5 (text): three layers of gated delta rule to one of gated attention, "
        "experts or plain MLPs",
    .model_types = {"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"},
    .prefix = "model.",
    .anchor = "embed_tokens.weight",
    .spec = qwen3_next_spec,
    .weights = qwen3_next_weights};

}  // namespace rankscope
