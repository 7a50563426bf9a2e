// Networks trained by `rankscope study`, as `study export --model` writes them: tensors carry this project's
// own names, the vocabulary is a sample of the task's points.
#include "checkpoint/architecture.h"
#include "checkpoint/config.h"
#include "checkpoint/weight_list.h"
#include "parts/check.h"
#include "spec/json.h"

namespace rankscope {
namespace {

NormKind norm_of(const JsonObject& config, const char* key, const char* otherwise) {
  const std::string name = config.string(key, otherwise);
  for (const NormKind kind : {NormKind::none, NormKind::unit, NormKind::layer, NormKind::rms})
    if (name == to_string(kind)) return kind;
  throw Error(fmt::format("there is no norm \"{}\"", printable(name)))
      .in(config.place())
      .hint("none, unit, layer or rms");
}

// Networks exported before the spec stood in config.json: one kind of block, described by single keys.
ModelSpec spec_from_keys(const JsonObject& config) {
  ModelSpec s;
  s.architecture = "rankscope";
  s.width = size_at(config, {"hidden_size"}, kMaxWidth);
  const int64_t positions = config.integer("positions", 0, kMaxPositions, 0);
  s.position = positions > 0 ? PositionKind::learned : PositionKind::none;
  s.embedding = {.vocabulary = vocabulary_of(config), .width = s.width, .positions = positions};
  const NormPlace place = config.string("norm_place", "post") == "pre" ? NormPlace::pre : NormPlace::post;
  const NormSpec norm{norm_of(config, "norm", "unit"), epsilon_of(config, "norm_epsilon", 1e-5)};
  if (place == NormPlace::pre) s.final_norm = norm;
  s.embedding.norm = {norm_of(config, "embedding_norm", "none"), norm.epsilon};

  AttentionSpec a;
  a.heads = a.kv_heads = config.integer("heads", 1, kMaxHeads);
  a.d_qk = size_at(config, {"rank"}, kMaxHeadWidth);
  a.d_v = size_at(config, {"v_rank"}, kMaxHeadWidth);
  a.scale = config.number("score_scale", 0.0, 1e6);
  a.bias = a.output_bias = config.boolean("bias", true);
  a.variant = config.boolean("hard", false) ? "hard" : "softmax";
  const MlpSpec mlp{.width = config.integer("mlp", 0, kMaxMlpWidth, 0),
                    .activation = activation_of(config, "activation", "relu"),
                    .bias = a.bias};
  BlockSpec block = classic_block(place, norm, a, mlp.width > 0 ? "mlp" : "", mlp);
  block.attention_branch()->skip = config.boolean("attention_skip", true);
  repeat_block(s, block, size_at(config, {"layers"}, kMaxLayers));
  if (const int64_t outputs = config.integer("outputs", 0, kMaxVocabulary, 0); outputs > 0)
    s.output = {.kind = HeadKind::linear, .vocabulary = outputs, .width = s.width, .bias = true};
  return s;
}

ModelSpec rankscope_spec(const JsonObject& config) {
  if (!config.has("spec")) return spec_from_keys(config);
  const ModelSpec s = spec_from_json(config.at("spec"), config.place() + ", spec");
  check(s, config.place());
  if (s.embedding.points > 0)
    throw Error("the network reads points, and the tokens of a checkpoint are words or patches")
        .in(config.place())
        .hint("rankscope study export --model writes a table of words");
  if (!s.sources.empty())
    throw Error(fmt::format("the network reads the stream \"{}\" too, and a scan follows one stream",
                            printable(s.sources.front().name)))
        .in(config.place());
  for (size_t l = 0; l < s.blocks.size(); ++l)
    if (s.blocks[l].attention_branch() == nullptr)
      throw Error(fmt::format("block {} has no attention, so there is nothing of it to scan", l))
          .in(config.place());
  return s;
}

WeightMap rankscope_weights(const ModelSpec& s) {
  WeightList list;
  for (const Parameter& p : parameters(s)) list.add(p.name, {.tensor = p.name});
  return list.take(s);
}

}  // namespace

extern const Architecture arch_rankscope{.name = "rankscope",
                                         .summary = "networks trained by rankscope study",
                                         .model_types = {"rankscope"},
                                         .prefix = "",
                                         .anchor = "embed.W_E",
                                         .spec = rankscope_spec,
                                         .weights = rankscope_weights};

}  // namespace rankscope
