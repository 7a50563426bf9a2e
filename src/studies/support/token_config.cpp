#include "studies/support/token_config.h"

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

}  // namespace

std::vector<Key> token_keys() {
  const std::vector<std::string> tri{kAsTask, "on", "off"};
  return {
      {"task", std::string("sort"), "what is asked", 0, 0, {"hull", "memorise", "sort"}},
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

TokenTraining training_of(const TokenTrial& t, const TokenData& data) {
  const TokenRecipe& r = t.recipe;
  return {.network = {.layers = r.layers,
                      .heads = r.heads,
                      .width = r.width,
                      .vocabulary = data.vocabulary,
                      .positions = r.positions ? r.tokens : 0,
                      .deep_input = r.deep_input,
                      .mlp = r.mlp,
                      .outputs = data.classes},
          .recipe = r,
          .init_seed = t.init_seed,
          .data_seed = t.data_seed};
}

}  // namespace rankscope
