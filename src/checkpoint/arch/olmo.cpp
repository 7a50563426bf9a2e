// OLMo 2 and 3: norms only on what the branches wrote, and one on all queries and all keys together. OLMo 3
// has windows on three layers of four, which turn without the stretch of the others.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

// Where the config has one rotation for all, stretched or not, layers with a window turn without the stretch.
void set_layer_rotation(AttentionSpec& a, const JsonObject& config, const std::string& type, double theta) {
  const bool by_type = config.has("rope_parameters") && config.at("rope_parameters").is_object() &&
                       config.at("rope_parameters").contains("full_attention");
  if (by_type || type == "full_attention")
    return set_rotation(a, config, a.d_qk, type, {.theta = config.number("rope_theta", 1.0, 1e15, theta)});
  a.rotary_frequencies = plain_frequencies(rope_theta_of(config, {}, theta), a.d_qk);
}

ModelSpec olmo_spec(const JsonObject& config) {
  const bool third = model_type_of(config) == "olmo3";
  ModelSpec s = rotary_decoder(config, "olmo");
  s.final_norm = rms_of(config, 1e-5);
  AttentionSpec attention = grouped_attention(config, s.width);
  set_biases(attention, config);
  attention.qk_norm = s.final_norm;
  attention.qk_norm_span = NormSpan::all;
  MlpSpec mlp = gated_mlp_of(config);
  mlp.bias = false;
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, "gated_mlp", mlp);
  for (BranchSpec& branch : block.branches) {
    branch.before = {};
    branch.inside = s.final_norm;
  }
  const int64_t depth = depth_of(config);
  repeat_block(s, block, depth);
  const auto types = layer_types(config, depth, [&](int64_t i) { return third && (i + 1) % 4 != 0; });
  if (third) set_windows(s, types, window_of(config, 4096));
  for (size_t i = 0; i < s.blocks.size(); ++i)
    set_layer_rotation(s.blocks[i].attention(), config, types[i], third ? 500000.0 : 10000.0);
  add_linear_head(s, config, false);
  return s;
}

}  // namespace

extern const Architecture arch_olmo{
    .name = "olmo",
    .summary = "OLMo 2, OLMo 3: norms inside the branches only, normed queries and keys",
    .model_types = {"olmo2", "olmo3"},
    .prefix = "model.",
    .anchor = "embed_tokens.weight",
    .spec = olmo_spec,
    .weights = llama_weights};

}  // namespace rankscope
