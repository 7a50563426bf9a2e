// One training step of the rank-against-heads study's encoder: ours, LibTorch twice, and the limit.
#pragma once

#include "bench/bench.h"
#include "bench/machine.h"
#include "train/stack.h"

namespace rankscope {

struct StepShape {
  int64_t layers = 1, modules = 1, heads = 1;
  int64_t stack = 1;
  int64_t d = 64, tokens = 16, batch = 256, mlp = 2048;
};

std::string name_of(const StepShape& shape);

/// The cells of the study that the goals name: five on CUDA, six on the CPU.
std::vector<StepShape> study_shapes(const Machine& machine);

/// Trials that differ in their seeds.
std::vector<TrialSpec> trials_of(const StepShape& shape);
std::unique_ptr<Stack> fresh_stack(const std::vector<TrialSpec>& trials, const Machine& machine);

/// What a step of one trial cannot do without: three times the forward pass's arithmetic; weights read twice,
/// their gradients and the optimizer's state once each way, every layer's input kept for the way back.
double step_flops(const TrialSpec& trial);
double step_bytes(const TrialSpec& trial);

/// Seconds of one of our steps, of the whole stack.
double our_step(const Machine& machine, const std::vector<TrialSpec>& trials);

/// Loss and gradients from the same parameters and data first; a row with a fault carries no times.
BenchRow measure_step(Machine& machine, const StepShape& shape);

}  // namespace rankscope
