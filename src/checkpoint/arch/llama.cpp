// Llama and what kept its shape, Mistral and Qwen2: pre-norm causal decoders with RMS norms, rotary
// positions, gated MLPs and, mostly, fewer key and value heads than query heads.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

// The window of each block, 0 where it sees everything.
std::vector<int64_t> windows(const JsonObject& config, const std::string& model_type, int64_t depth) {
  std::vector<int64_t> out(static_cast<size_t>(depth), 0);
  if (model_type == "llama") return out;
  if (model_type == "qwen2" && !config.boolean("use_sliding_window", false)) return out;
  if (config.mentions("sliding_window") && !config.has("sliding_window")) return out;  // null: none
  const int64_t window = config.integer("sliding_window", 1, int64_t{1} << 40, 4096);
  const int64_t first =
      model_type == "qwen2" ? config.integer("max_window_layers", 0, int64_t{1} << 40, 28) : 0;
  if (model_type == "mistral") {  // a window is one of every layer; lists of them are other types'
    for (const std::string& type : layer_types(config, depth, [](int64_t) { return true; }))
      if (type != "sliding_attention") refuse(config, "layer_types", "a layer without the window");
    return std::vector<int64_t>(out.size(), window);
  }
  const auto types = layer_types(config, depth, [&](int64_t i) { return i >= first; });
  for (size_t i = 0; i < out.size(); ++i) out[i] = types[i] == "sliding_attention" ? window : 0;
  return out;
}

ModelSpec llama_spec(const JsonObject& config) {
  const std::string model_type = model_type_of(config);
  ModelSpec s = rotary_decoder(config, "llama");
  s.final_norm = rms_of(config, 1e-6);
  AttentionSpec attention = grouped_attention(config, s.width);
  if (model_type == "llama") set_biases(attention, config);
  if (model_type == "qwen2") attention.bias = true;
  set_rotation(attention, config, attention.d_qk);
  MlpSpec mlp = gated_mlp_of(config);
  mlp.bias = mlp.bias && model_type == "llama";
  const int64_t depth = depth_of(config);
  repeat_block(s, classic_block(NormPlace::pre, s.final_norm, attention, "gated_mlp", mlp), depth);
  const std::vector<int64_t> window = windows(config, model_type, depth);
  for (size_t i = 0; i < s.blocks.size(); ++i) s.blocks[i].attention().window = window[i];
  add_linear_head(s, config, false);
  return s;
}

}  // namespace

extern const Architecture arch_llama{
    .name = "llama",
    .summary = "Llama, Mistral, Qwen2: pre-norm causal decoder, rotary positions",
    .model_types = {"llama", "mistral", "qwen2"},
    .prefix = "model.",
    .anchor = "embed_tokens.weight",
    .spec = llama_spec,
    .weights = llama_weights};

}  // namespace rankscope
