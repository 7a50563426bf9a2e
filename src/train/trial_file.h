// The checkpoint of one trial: weights by name, optimizer, step and what has been measured so far, in one
// safetensors file that is there whole or not at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/stack.h"

namespace rankscope {

/// What a trial has measured so far. Kept with the checkpoint, so that a resumed trial reports the same
/// numbers.
struct Record {
  double window_sum = 0, window_count = 0;  // the training loss since the last full window
  double last_loss = 0, best_loss = 0;      // means over full windows of kWindow steps
  double windows = 0;
  double test = 0, test_stderr = 0;  // at the last test
  double best_test = 0, best_test_step = 0;
  double start_test = 0;  // before the first update
  double tests = 0;
  double seconds = 0;  // of training, over all attempts: the trial's share of its stack
};

struct Saved {
  TrainState state;
  Record record;
  std::string precision = "fp32";  // "tf32" when any step was; empty: the file does not say
};

void save_trial(const std::filesystem::path& file, const NetworkSpec& network, const Saved& saved);

/// Nothing where there is no file; a file that is not this trial's is an error.
std::optional<Saved> load_trial(const std::filesystem::path& file, const NetworkSpec& network);

/// The weights alone.
void save_weights(const std::filesystem::path& file, const NetworkSpec& network,
                  const std::vector<float>& parameters);
std::vector<float> load_weights(const std::filesystem::path& file, const NetworkSpec& network);

}  // namespace rankscope
