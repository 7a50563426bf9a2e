// Trains one token network on a fixed set, epoch by epoch, and goes on where a checkpoint left it.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tasks/token_task.h"
#include "train/token_network.h"

namespace rankscope {

/// Everything that makes a training: with the set, it is a function of this value.
struct TokenTraining {
  TokenNetwork network = {};
  TokenRecipe recipe = {};  // of which: epochs, batch, lr, dropout, l2, clip, schedule, shuffle
  uint64_t init_seed = 0, data_seed = 0;
};

struct TokenTrained {
  std::vector<float> parameters = {};
  int64_t steps = 0;
  double loss = 0;     // mean over the last epoch
  double seconds = 0;  // of training, over all attempts
  bool diverged = false;
};

struct TokenTrainOptions {
  std::filesystem::path folder = {};  // checkpoint.safetensors, curve.jsonl; at the end model.safetensors
  double checkpoint_seconds = 60;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(int64_t step, double loss)> progress = {};  // now and then
};

int64_t training_steps(const TokenTraining& training, int64_t sequences);
double learning_rate(const TokenRecipe& recipe, int64_t step, int64_t steps_an_epoch);

/// Cross entropy over the tokens that are there, or the squared error summed over a sequence where points are
/// asked for; differentiable. `answers` as token_forward gives them.
at::Tensor token_loss(const at::Tensor& answers, const TokenSet& set, const std::vector<int64_t>& sequences,
                      const TokenBatch& batch);

/// The trained network; one that an earlier call left in the folder is read. Nothing when stopped early, with
/// a checkpoint written.
std::optional<TokenTrained> train_tokens(const TokenTraining& training, const TokenSet& set,
                                         const TokenTrainOptions& options);

/// The trained network of a folder, if there is one.
std::optional<TokenTrained> load_trained(const std::filesystem::path& folder, const TokenNetwork& network);

}  // namespace rankscope
