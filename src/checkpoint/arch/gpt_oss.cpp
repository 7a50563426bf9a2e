// gpt-oss: a decoder of experts whose attention has a learned sink per head, windows on every other layer,
// and experts that bound what they compute with. Each expert's gate and input rows alternate in one tensor.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"
#include "checkpoint/expert_weights.h"

namespace rankscope {
namespace {

ModelSpec gpt_oss_spec(const JsonObject& config) {
  refuse_other(config, "hidden_act", "silu");  // named in the config; the experts compute with a bounded one
  for (const auto& [key, only] : {std::pair{"swiglu_limit", 7.0}, {"swiglu_alpha", 1.702}})
    if (const double value = config.number(key, -1e12, 1e12, only); value != only)
      refuse(config, key, fmt::format("{}", value));
  ModelSpec s = rotary_decoder(config, "gpt_oss");
  s.final_norm = rms_of(config, 1e-5);
  AttentionSpec attention = grouped_attention(config, s.width);
  attention.bias = attention.output_bias = config.boolean("attention_bias", true);
  attention.sinks = true;
  set_rotation(attention, config, attention.d_qk, {}, {.theta = 150000.0});
  const int64_t depth = depth_of(config);
  const MlpSpec mlp{.width = size_at(config, {"intermediate_size"}, kMaxMlpWidth),
                    .activation = Activation::quick_gelu_7,
                    .bias = false};
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, "experts", mlp);
  PartSpec& experts = block.mlp_branch()->part;
  set_option(
      experts, "experts",
      static_cast<double>(config.integer(key_of(config, {"num_local_experts", "num_experts"}), 1, 1024)));
  set_option(experts, "active",
             static_cast<double>(
                 config.integer(key_of(config, {"num_experts_per_tok", "experts_per_token"}), 1, 1024, 4)));
  for (const char* on : {"biased", "router_bias", "limited"}) set_option(experts, on, 1);
  repeat_block(s, block, depth);
  set_windows(s, layer_types(config, depth, [](int64_t i) { return i % 2 == 0; }), window_of(config, 128));
  add_linear_head(s, config, false);
  s.init.stds = {{"attn.sinks", s.init.std}, {"mlp.b_router", s.init.std}};
  return s;
}

// Row 0 of each pair is the gate's, row 1 the input's; stored [in, out].
void alternating(WeightList& list, const std::string& b, const std::string& module, int64_t e, int64_t count,
                 int64_t hidden, int64_t width) {
  const std::string to = fmt::format("{}mlp.experts.{}.", b, e);
  for (const auto& [letter, row] : {std::pair{"gate", 0}, {"in", 1}}) {
    const Source both{.first_row = row, .stored_rows = 2 * hidden, .groups = hidden, .matrix = e};
    Source W = both, bias = both;
    W.tensor = module + ".gate_up_proj";
    W.transpose = true;
    W.stored_shape = {count, width, 2 * hidden};
    bias.tensor = module + ".gate_up_proj_bias";
    bias.stored_shape = {count, 2 * hidden};
    list.add(to + "W_" + letter, W);
    list.add(to + "b_" + letter, bias);
  }
  list.add(to + "W_out", {.tensor = module + ".down_proj",
                          .transpose = true,
                          .stored_shape = {count, hidden, width},
                          .matrix = e});
  list.add(to + "b_out", {.tensor = module + ".down_proj_bias", .stored_shape = {count, width}, .matrix = e});
}

WeightMap gpt_oss_weights(const ModelSpec& s) {
  WeightList list;
  decoder_weights(list, s);
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const BlockSpec& block = s.blocks[static_cast<size_t>(i)];
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("layers.{}.", i);
    list.add(b + "attn.sinks", {layer + "self_attn.sinks"});
    list.linear(b + "mlp.", "router", layer + "mlp.router");
    const BranchSpec* mlp = block.mlp_branch();
    if (mlp == nullptr) continue;
    const auto count = static_cast<int64_t>(option_of(mlp->part, "experts"));
    for (int64_t e = 0; e < count; ++e)
      alternating(list, b, layer + "mlp.experts", e, count, mlp->mlp()->width, s.width);
  }
  return list.take(s);
}

}  // namespace

extern const Architecture arch_gpt_oss{
    .name = "gpt_oss",
    .summary = "gpt-oss: causal decoder of experts with learned sinks, windows on every other layer",
    .model_types = {"gpt_oss"},
    .prefix = "model.",
    .anchor = "embed_tokens.weight",
    .spec = gpt_oss_spec,
    .weights = gpt_oss_weights};

}  // namespace rankscope
