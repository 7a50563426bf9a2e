// The checkpoint of one trial: weights and moments of the optimizer by name, step and what has been measured
// so far, in one safetensors file that is there whole or not at all. Files of the layouts before it (moments
// as one flat buffer; trials on sets as nothing but flat buffers) are read too.
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

void save_trial(const std::filesystem::path& file, const ModelSpec& network, const Saved& saved);

/// Nothing where there is no file; a file that is not this trial's is an error.
std::optional<Saved> load_trial(const std::filesystem::path& file, const TrialSpec& trial);

/// A trial that is done: its weights, and what it measured.
struct Finished {
  std::vector<float> parameters;
  int64_t step = 0;
  Record record;
};
void save_finished(const std::filesystem::path& file, const ModelSpec& network, const Finished& finished);

/// Nothing where there is no file.
std::optional<Finished> load_finished(const std::filesystem::path& file, const TrialSpec& trial);
/// The weights alone.
std::vector<float> load_weights(const std::filesystem::path& file, const ModelSpec& network);

}  // namespace rankscope
