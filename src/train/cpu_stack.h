#pragma once

#include "train/stack.h"

namespace rankscope {

std::unique_ptr<Stack> make_cpu_stack(const std::vector<TrialSpec>& trials,
                                      const std::vector<TrainState>& states, int threads);

/// The random numbers of sequences [first, first + count) of a step.
std::unique_ptr<Draw> cpu_draw(uint64_t seed, int64_t step, int64_t first, int64_t count);

}  // namespace rankscope
