// The blocks that CLIP's two towers share: pre-norm, with biases everywhere.
#pragma once

#include "checkpoint/config.h"
#include "checkpoint/weight_list.h"

namespace rankscope {

inline void clip_blocks(ModelSpec& s, const JsonObject& config, bool causal) {
  AttentionSpec attention = plain_attention(config, "num_attention_heads", s.width);
  attention.causal = causal;
  const BlockSpec block = classic_block(
      NormPlace::pre, {NormKind::layer, epsilon_of(config, "layer_norm_eps", 1e-5)}, attention, "mlp",
      {.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth),
       .activation = activation_of(config, "hidden_act", "quick_gelu")});
  repeat_block(s, block, size_at(config, {"num_hidden_layers"}, kMaxLayers));

  // By the width and, for what is summed over the depth, by the depth.
  const double factor = config.number("initializer_factor", 0.0, 1e3, 1.0);
  const double width = factor / std::sqrt(static_cast<double>(s.width)),
               summed = width / std::sqrt(2.0 * static_cast<double>(s.depth()));
  s.init.stds = {{"W_Q", summed},
                 {"W_K", summed},
                 {"W_V", summed},
                 {"W_O", width},
                 {"W_in", width / std::sqrt(2.0)},
                 {"W_out", summed},
                 {"embed.cls", width},
                 {"embed.W_patch", factor * s.init.std},
                 {"embed.W_E", factor * 0.02},
                 {"embed.W_pos", factor * (causal ? 0.02 : s.init.std)}};
}

inline void clip_block_weights(WeightList& list, const ModelSpec& s) {
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("encoder.layers.{}.", i);
    list.norm(b + "ln1", layer + "layer_norm1");
    list.linear(b + "attn.", "Q", layer + "self_attn.q_proj");
    list.linear(b + "attn.", "K", layer + "self_attn.k_proj");
    list.linear(b + "attn.", "V", layer + "self_attn.v_proj");
    list.linear(b + "attn.", "O", layer + "self_attn.out_proj");
    list.norm(b + "ln2", layer + "layer_norm2");
    list.linear(b + "mlp.", "in", layer + "mlp.fc1");
    list.linear(b + "mlp.", "out", layer + "mlp.fc2");
  }
}

}  // namespace rankscope
