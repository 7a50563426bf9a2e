// GPT-2: a pre-norm causal decoder. Its Conv1D layers store [in, out], its queries, keys and values in one of
// them.
#include "checkpoint/architecture.h"
#include "checkpoint/config.h"
#include "checkpoint/weight_list.h"

namespace rankscope {
namespace {

ModelSpec gpt2_spec(const JsonObject& config) {
  refuse_true(config, {"add_cross_attention"});
  refuse_pruned(config);

  ModelSpec s;
  s.architecture = "gpt2";
  s.width = size_at(config, {"n_embd", "hidden_size"}, kMaxWidth);
  s.position = PositionKind::learned;
  s.init.std = init_std_of(config);
  const NormSpec norm{NormKind::layer, epsilon_of(config, "layer_norm_epsilon", 1e-5)};
  s.embedding = {
      .vocabulary = vocabulary_of(config),
      .width = s.width,
      .positions = size_at(config, {"n_positions", "max_position_embeddings", "n_ctx"}, kMaxPositions)};
  s.final_norm = norm;

  AttentionSpec attention =
      plain_attention(config, key_of(config, {"n_head", "num_attention_heads"}), s.width);
  attention.causal = true;
  if (!config.boolean("scale_attn_weights", true)) attention.scale = 1.0;
  const MlpSpec mlp{.width = config.integer("n_inner", 1, kMaxMlpWidth, 4 * s.width),
                    .activation = activation_of(config, "activation_function", "gelu_new")};
  const BlockSpec block = classic_block(NormPlace::pre, norm, attention, "mlp", mlp);
  repeat_block(s, block, size_at(config, {"n_layer", "num_hidden_layers"}, kMaxLayers));
  // What is added to the stream starts smaller, so that the stream does not grow with the depth.
  const double written = s.init.std / std::sqrt(2.0 * static_cast<double>(s.depth()));
  s.init.stds = {{"attn.W_O", written}, {"mlp.W_out", written}};
  if (config.boolean("scale_attn_by_inverse_layer_idx", false))
    for (size_t i = 0; i < s.blocks.size(); ++i) s.blocks[i].attention().scale /= static_cast<double>(i + 1);

  if (promises_head(config, {"LMHeadModel", "DoubleHeadsModel"}))
    s.output = {.kind = HeadKind::linear,
                .vocabulary = s.embedding.vocabulary,
                .width = s.width,
                .tied = config.boolean("tie_word_embeddings", true)};
  return s;
}

WeightMap gpt2_weights(const ModelSpec& s) {
  const int64_t d = s.width;
  WeightList list;
  list.add("embed.W_E", {"wte.weight"});
  list.add("embed.W_pos", {"wpe.weight"});
  for (int64_t i = 0; i < s.stored_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), layer = fmt::format("h.{}.", i);
    list.norm(b + "ln1", layer + "ln_1");
    int64_t row = 0;
    for (const char* letter : {"Q", "K", "V"}) {
      list.linear(b + "attn.", letter, layer + "attn.c_attn",
                  {.transpose = true, .first_row = row, .stored_rows = 3 * d});
      row += d;
    }
    list.linear(b + "attn.", "O", layer + "attn.c_proj", {.transpose = true});
    list.norm(b + "ln2", layer + "ln_2");
    list.linear(b + "mlp.", "in", layer + "mlp.c_fc", {.transpose = true});
    list.linear(b + "mlp.", "out", layer + "mlp.c_proj", {.transpose = true});
  }
  list.norm("ln_final", "ln_f");
  list.vocabulary(s, "wte.weight", "lm_head.weight");
  return list.take(s);
}

}  // namespace

extern const Architecture arch_gpt2{.name = "gpt2",
                                    .summary = "GPT-2: pre-norm causal decoder",
                                    .model_types = {"gpt2"},
                                    .prefix = "transformer.",
                                    .anchor = "wte.weight",
                                    .spec = gpt2_spec,
                                    .weights = gpt2_weights};

}  // namespace rankscope
