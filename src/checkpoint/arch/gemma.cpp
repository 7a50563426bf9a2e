// Gemma 2 and the language model of Gemma 3: scaled embeddings, RMS norms before and inside both branches
// with gains stored as their difference from one, and layers that see a window in turn with layers that see
// all. Gemma 2 caps its scores and logits; Gemma 3 norms queries and keys, and turns the two kinds of layers
// differently.
#include "checkpoint/architecture.h"
#include "checkpoint/decoder.h"

namespace rankscope {
namespace {

double cap_of(const JsonObject& config, const char* key, double otherwise) {
  if (config.mentions(key) && !config.has(key)) return 0;  // null: none
  return config.number(key, 1e-6, 1e12, otherwise);
}

// Gemma 3's rotation of one type of layer; version 4 of the library kept the base of sliding layers apart.
void set_gemma3_rotation(AttentionSpec& a, const JsonObject& config, const std::string& type) {
  const double local = config.number("rope_local_base_freq", 1.0, 1e15, 10000.0);
  if (config.has("rope_parameters"))
    set_rotation(a, config, a.d_qk, type, {.theta = type == "full_attention" ? 1e6 : local});
  else if (type == "full_attention")
    set_rotation(a, config, a.d_qk, {}, {.theta = 1e6});
  else
    a.rotary_frequencies = plain_frequencies(local, a.d_qk);
}

ModelSpec gemma_spec(const JsonObject& config) {
  const bool third = model_type_of(config) == "gemma3_text";
  const bool both_ways = third && config.boolean("use_bidirectional_attention", false);  // EmbeddingGemma
  ModelSpec s = rotary_decoder(config, "gemma");
  s.embedding.scale = std::sqrt(static_cast<double>(s.width));
  s.final_norm = rms_of(config, 1e-6);
  AttentionSpec attention = grouped_attention(config, s.width);
  set_biases(attention, config);
  attention.causal = !both_ways;
  attention.scale = 1.0 / std::sqrt(config.number("query_pre_attn_scalar", 1e-6, 1e12, 256));
  if (!third)  // Gemma 3's configs have the key, and its code does not use it
    attention.softcap = cap_of(config, "attn_logit_softcapping", 50);
  if (third) attention.qk_norm = s.final_norm;
  if (!third) set_rotation(attention, config, attention.d_qk);
  BlockSpec block = classic_block(NormPlace::pre, s.final_norm, attention, "gated_mlp",
                                  gated_mlp_of(config, "hidden_activation", "gelu_pytorch_tanh"));
  for (BranchSpec& branch : block.branches) branch.inside = s.final_norm;
  const int64_t depth = depth_of(config);
  repeat_block(s, block, depth);

  const int64_t pattern =
      third ? config.integer("sliding_window_pattern", 1, kMaxLayers, 6) : 2;  // the last of so many sees all
  const auto types = layer_types(config, depth, [&](int64_t i) { return (i + 1) % pattern != 0; });
  // To both sides the window counts both: half of it to either, and the token itself.
  const int64_t window = window_of(config, 4096);
  set_windows(s, types, both_ways && window > 0 ? window / 2 + 1 : window);
  for (size_t i = 0; third && i < s.blocks.size(); ++i)
    set_gemma3_rotation(s.blocks[i].attention(), config, types[i]);
  add_linear_head(s, config, true);
  if (s.output.kind != HeadKind::none)
    s.output.softcap = cap_of(config, "final_logit_softcapping", third ? 0 : 30);
  return s;
}

WeightMap gemma_weights(const ModelSpec& s) {
  WeightList list;
  decoder_weights(list, s, 1.0);
  return list.take(s);
}

}  // namespace

extern const Architecture arch_gemma{.name = "gemma",
                                     .summary =
                                         "Gemma 2, Gemma 3 (text), EmbeddingGemma: norms before and inside "
                                         "both branches, windows on most layers",
                                     .model_types = {"gemma2", "gemma3_text"},
                                     .prefix = "model.",
                                     .anchor = "embed_tokens.weight",
                                     .spec = gemma_spec,
                                     .weights = gemma_weights};

}  // namespace rankscope
