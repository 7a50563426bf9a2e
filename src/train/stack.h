// Several trials of one shape, trained together: on the CPU trial by trial and tile by tile, on CUDA in one
// pass.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/protocol.h"

namespace rankscope {

/// What a checkpoint holds of the optimisation: equal states continue equally.
struct TrainState {
  std::vector<float> parameters, m, v;
  int64_t step = 0;  // updates done
};

struct Score {
  double mse = 0, stderr_ = 0;
};

class Stack {
 public:
  virtual ~Stack() = default;
  /// `count` updates of every trial; adds each step's training loss to losses[trial], step by step.
  virtual void advance(int64_t count, std::vector<double>& losses) = 0;
  /// Error on the fixed test set, one entry a trial.
  virtual std::vector<Score> evaluate() = 0;
  virtual TrainState state(size_t trial) const = 0;
  /// Leaves a trial alone from here on: its loss is not finite.
  virtual void drop(size_t trial) = 0;
};

struct StackOptions {
  std::string device = "cpu";
  int threads = 1;
  bool tf32 = false;
};

/// Whether products are rounded: asked for, and on a device that can.
bool rounds_to_tf32(const StackOptions& options);

/// Trials with equal stack keys and equal steps. Running out of device memory throws Error("...memory...").
std::unique_ptr<Stack> make_stack(const std::vector<TrialSpec>& trials, const std::vector<TrainState>& states,
                                  const StackOptions& options);

/// How many trials like this fit on the device now.
int64_t stack_limit(const TrialSpec& trial, const std::string& device);

}  // namespace rankscope
