// Qwen3: Llama's block with an RMS norm on each head's queries and keys.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

ModelSpec qwen3_spec(const JsonObject& config) {
  ModelSpec s = rotary_decoder(config, "qwen3");
  s.final_norm = rms_of(config, 1e-6);
  AttentionSpec attention = grouped_attention(config, s.width);
  set_biases(attention, config);
  set_rotation(attention, config, attention.d_qk);
  attention.qk_norm = s.final_norm;
  const int64_t depth = depth_of(config);
  repeat_block(s, classic_block(NormPlace::pre, s.final_norm, attention, "gated_mlp", gated_mlp_of(config)),
               depth);
  if (config.boolean("use_sliding_window", false)) {
    const int64_t first = config.integer("max_window_layers", 0, int64_t{1} << 40, 28);
    set_windows(s, layer_types(config, depth, [&](int64_t i) { return i >= first; }),
                window_of(config, 4096));
  }
  add_linear_head(s, config, false);
  return s;
}

}  // namespace

extern const Architecture arch_qwen3{.name = "qwen3",
                                     .summary = "Qwen3: Llama's block with normed queries and keys",
                                     .model_types = {"qwen3"},
                                     .prefix = "model.",
                                     .anchor = "embed_tokens.weight",
                                     .spec = qwen3_spec,
                                     .weights = llama_weights};

}  // namespace rankscope
