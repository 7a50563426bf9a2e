// The keys that every training of a token network has, and what they say together with the task's recipe.
#pragma once

#include "studies/config.h"
#include "tasks/token_task.h"
#include "train/token_trainer.h"

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

/// The network for data with this vocabulary and these classes.
TokenTraining training_of(const TokenTrial& trial, const TokenData& data);

}  // namespace rankscope
