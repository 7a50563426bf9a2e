// The keys that every training of a token network has, and what they say together with the task's recipe.
#pragma once

#include "studies/config.h"
#include "tasks/token_task.h"
#include "train/protocol.h"

namespace rankscope {

/// What one configuration trains.
struct TokenTrial {
  const TokenTask* task;
  TokenTaskSpec data;
  TokenRecipe recipe;
  bool reference = false;
  uint64_t init_seed = 0, data_seed = 0, draw_seed = 0;
};

/// 0, -1 and "as-task" stand for what the recipe of the task says.
std::vector<Key> token_keys();
TokenTrial token_trial_of(const Config& config);

/// A post-norm network over words (`vocabulary` > 0) or points of the plane, with an answer at every token:
/// an embedding that ends in a LayerNorm, blocks x <- LN(x + attention(x)), perhaps with MLPs.
ModelSpec token_network(const TokenRecipe& recipe, int64_t vocabulary, int64_t outputs, bool skip = true);

/// How the recipe trains on so many sequences.
Protocol protocol_of(const TokenRecipe& recipe, int64_t sequences);

/// The training on data; the set is data.train.
TrialSpec training_of(const TokenTrial& trial, const TokenData& data);

}  // namespace rankscope
