// SmolLM3: Llama in which every fourth layer has no positions at all.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

// Whether layer i turns its queries and keys: the config's list says 1 where it does.
std::vector<bool> turning(const JsonObject& config, int64_t depth) {
  std::vector<bool> out;
  const int64_t interval = config.integer("no_rope_layer_interval", 1, kMaxLayers, 4);
  for (int64_t i = 0; i < depth; ++i) out.push_back((i + 1) % interval != 0);
  if (!config.has("no_rope_layers")) return out;
  const Json& list = config.at("no_rope_layers");
  if (!list.is_array() || list.size() != out.size())
    throw Error(fmt::format("\"no_rope_layers\" should list {} numbers", depth)).in(config.place());
  for (size_t i = 0; i < out.size(); ++i) {
    if (list[i] != 0 && list[i] != 1)
      throw Error(
          "\"no_rope_layers\" should hold 1 where a layer turns its queries and keys, and 0 elsewhere")
          .in(config.place());
    out[i] = list[i] == 1;
  }
  return out;
}

ModelSpec smollm3_spec(const JsonObject& config) {
  ModelSpec s = rotary_decoder(config, "smollm3");
  s.final_norm = rms_of(config, 1e-6);
  AttentionSpec attention = grouped_attention(config, s.width);
  set_biases(attention, config);
  set_rotation(attention, config, attention.d_qk, {}, {.theta = 2000000.0});
  const int64_t depth = depth_of(config);
  repeat_block(s, classic_block(NormPlace::pre, s.final_norm, attention, "gated_mlp", gated_mlp_of(config)),
               depth);
  const std::vector<bool> turns = turning(config, depth);
  for (size_t i = 0; i < s.blocks.size(); ++i)
    if (!turns[i]) s.blocks[i].attention().rotary_frequencies.clear();
  if (config.boolean("use_sliding_window", false))
    set_windows(s, layer_types(config, depth, [&](int64_t i) { return !turns[static_cast<size_t>(i)]; }),
                window_of(config, 0));
  add_linear_head(s, config, true);
  return s;
}

}  // namespace

extern const Architecture arch_smollm3{.name = "smollm3",
                                       .summary = "SmolLM3: Llama with layers that have no positions",
                                       .model_types = {"smollm3"},
                                       .prefix = "model.",
                                       .anchor = "embed_tokens.weight",
                                       .spec = smollm3_spec,
                                       .weights = llama_weights};

}  // namespace rankscope
