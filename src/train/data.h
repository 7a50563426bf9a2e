// What a trial trains on: sequences drawn fresh for every step, or a set that is gone through again and
// again.
#pragma once

#include <memory>

#include "train/protocol.h"

namespace rankscope {

class TrialData {
 public:
  virtual ~TrialData() = default;
  /// Called before the sequences of a step are asked for, from one thread.
  virtual void begin_step(int64_t /*step*/) {}
  /// Sequences of the step's batch.
  virtual int64_t batch(int64_t step) const = 0;
  /// Some of them; from any thread.
  virtual TaskBatch train(int64_t step, int64_t first, int64_t count) const = 0;
  /// What one answer of the step weighs in the loss.
  virtual double weight(int64_t step) const = 0;
  virtual TaskBatch test(int64_t first, int64_t count) const = 0;
};

std::unique_ptr<TrialData> data_of(const TrialSpec& trial);

/// The random numbers of sequences [first, first + count) of a step, on the CPU.
std::unique_ptr<Draw> cpu_draw(uint64_t seed, int64_t step, int64_t first, int64_t count);

/// What the masks of a step's dropout are drawn from; the sequences of another tile have other masks.
uint64_t dropout_seed(const TrialSpec& trial, int64_t step, int64_t tile);

/// Some sequences of a set as a batch.
TaskBatch batch_of(const TokenSet& set, const std::vector<int64_t>& sequences);

/// weight * the loss of a batch: squared errors summed, or cross entropies of the labels there are.
at::Tensor loss_of(const at::Tensor& answers, const TaskBatch& batch, double weight);

}  // namespace rankscope
