#include "studies/support/token_config.h"

#include <cmath>

#include "base/error.h"
#include "base/philox.h"

namespace rankscope {
namespace {

constexpr const char* kAsTask = "as-task";
constexpr uint32_t kInit = 1, kData = 2, kDraws = 3;

// Independent streams from one number.
uint64_t derived(uint64_t seed, uint32_t purpose) { return Philox{seed, purpose, 0}.below(UINT64_MAX, 0); }

void replace(int64_t& value, const Config& c, const char* key) {
  if (const int64_t given = integer(c, key); given > 0) value = given;
}
void replace(bool& value, const Config& c, const char* key) {
  if (const std::string& given = text(c, key); given != kAsTask) value = given == "on";
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TokenTask* task : token_tasks()) names.emplace_back(task->name);
  return names;
}

}  // namespace

std::vector<Key> token_keys() {
  const std::vector<std::string> tri{kAsTask, "on", "off"};
  return {
      {"task", std::string("sort"), "what is asked", 0, 0, task_names()},
      {"protocol",
       std::string("corrected"),
       "settings that train, or those of the published code",
       0,
       0,
       {"corrected", "reference"}},
      {"layers", int64_t{0}, "L; 0: as the task says, here and below", 0, 64},
      {"heads", int64_t{0}, "H", 0, 256},
      {"d", int64_t{0}, "width", 0, 4096},
      {"mlp", std::string(kAsTask), "an MLP in every layer", 0, 0, tri},
      {"positions", std::string(kAsTask), "learned ones, added", 0, 0, tri},
      {"tokens", int64_t{0}, "of a sequence, at most", 0, 4096},
      {"train", int64_t{0}, "sequences", 0, 1e7},
      {"test", int64_t{0}, "sequences that are read", 0, 1e6},
      {"text", std::string(), "memorise: a file or a folder of texts; none: a synthetic one"},
      {"epochs", int64_t{0}, "over the training set", 0, 1e6},
      {"batch", int64_t{0}, "sequences a step", 0, 1 << 20},
      {"lr", 0.0, "learning rate", 0, 1e3},
      {"dropout", -1.0, "in training; -1: as the task says", -1, 0.99},
      {"seed", int64_t{0}, "of initialisation, data and draws of paths, independently", 0, 1e15},
  };
}

TokenTrial token_trial_of(const Config& c) {
  TokenTrial t;
  t.task = &token_task_named(text(c, "task"));
  t.reference = text(c, "protocol") == "reference";
  TokenRecipe& r = t.recipe = t.task->recipe(t.reference);
  replace(r.layers, c, "layers");
  replace(r.heads, c, "heads");
  replace(r.width, c, "d");
  replace(r.mlp, c, "mlp");
  replace(r.positions, c, "positions");
  replace(r.tokens, c, "tokens");
  replace(r.train, c, "train");
  replace(r.test, c, "test");
  replace(r.epochs, c, "epochs");
  replace(r.batch, c, "batch");
  if (number(c, "lr") > 0) r.lr = number(c, "lr");
  if (number(c, "dropout") >= 0) r.dropout = number(c, "dropout");
  const auto seed = static_cast<uint64_t>(integer(c, "seed"));
  t.init_seed = derived(seed, kInit);
  t.data_seed = derived(seed, kData);
  t.draw_seed = derived(seed, kDraws);
  t.data = {
      .tokens = r.tokens, .train = r.train, .test = r.test, .seed = t.data_seed, .text = text(c, "text")};
  return t;
}

ModelSpec token_network(const TokenRecipe& r, int64_t vocabulary, int64_t outputs, bool skip) {
  if (r.width % r.heads != 0)
    throw usage_error(fmt::format("{} heads do not divide the width {}", r.heads, r.width));
  const NormSpec norm{NormKind::layer, 1e-12};
  ModelSpec s;
  s.architecture = "rankscope";
  s.width = s.embedding.width = r.width;
  s.embedding.vocabulary = vocabulary;
  if (vocabulary == 0) {
    s.embedding.points = 2;
    s.embedding.point_map = true;
    s.embedding.point_activation = r.deep_input;
  }
  s.embedding.map = vocabulary > 0 || r.deep_input;
  s.embedding.positions = r.positions ? r.tokens : 0;
  s.embedding.norm_behind = norm;
  s.position = r.positions ? PositionKind::learned : PositionKind::none;
  AttentionSpec a;
  a.heads = a.kv_heads = r.heads;
  a.d_qk = a.d_v = r.width / r.heads;
  a.scale = 1 / std::sqrt(static_cast<double>(a.d_qk));
  BlockSpec block = classic_block(NormPlace::post, norm, a, r.mlp ? "mlp" : "", {.width = r.width});
  block.attention_branch()->skip = skip;
  for (; block.weights < r.layers; ++block.weights) s.blocks.push_back(block);
  s.stored_blocks = r.layers;
  s.output = {.kind = HeadKind::linear, .vocabulary = outputs, .width = r.width, .bias = true};
  s.init.kind = InitKind::mixed;
  return s;
}

Protocol protocol_of(const TokenRecipe& r, int64_t sequences) {
  Protocol p;
  p.window = std::max<int64_t>(1, (sequences + r.batch - 1) / r.batch);
  p.steps = r.epochs * p.window;
  p.batch = r.batch;
  p.lr = r.lr;
  p.warmup = 0;
  p.schedule = r.schedule == TokenRecipe::Schedule::linear  ? Schedule::linear
               : r.schedule == TokenRecipe::Schedule::steps ? Schedule::epochs
                                                            : Schedule::constant;
  p.adamw = {};
  p.l2 = r.l2;
  p.clip = r.clip;
  p.dropout = r.dropout;
  p.shuffle = r.shuffle;
  p.test_sequences = 0;
  return p;
}

TrialSpec training_of(const TokenTrial& t, const TokenData& data) {
  TrialSpec out;
  out.network = token_network(t.recipe, data.vocabulary, data.classes);
  out.set = std::make_shared<TokenSet>(data.train);
  out.protocol = protocol_of(t.recipe, t.recipe.train);
  out.init_seed = t.init_seed;
  out.data_seed = t.data_seed;
  return out;
}

}  // namespace rankscope
