#pragma once

#include "train/stack.h"

namespace rankscope {

std::unique_ptr<Stack> make_cpu_stack(const std::vector<TrialSpec>& trials,
                                      const std::vector<TrainState>& states, int threads);

}  // namespace rankscope
