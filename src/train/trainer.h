// Trains a stack of trials from where their checkpoints left them to the end, recording as it goes.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <vector>

#include "train/stack.h"
#include "train/trial_file.h"

namespace rankscope {

struct TrainJob {
  TrialSpec spec;
  std::filesystem::path folder;  // checkpoint.safetensors, curve.jsonl; at the end model.safetensors
};

struct TrainOutcome {
  bool failed = false;
  std::string reason = {};
  Record record = {};
  int64_t step = 0;
  std::vector<float> parameters = {};
  std::string precision = {};  // as in Saved, over all attempts
};

struct TrainOptions {
  StackOptions stack;
  double checkpoint_seconds = 60;
  const std::atomic<bool>* stop = nullptr;
  /// Steps over all trials: of this call, and of those before it that left checkpoints.
  std::function<void(int64_t steps, int64_t before, double loss)> progress = {};
  std::function<void(size_t job, const TrainOutcome&)> finished = {};
};

/// Returns early, with checkpoints written, after `stop`. Trials whose checkpoints are at different steps
/// train apart.
void train(const std::vector<TrainJob>& jobs, const TrainOptions& options);

}  // namespace rankscope
