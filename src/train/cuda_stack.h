#pragma once

#include "train/stack.h"

namespace rankscope {

std::unique_ptr<Stack> make_cuda_stack(const std::vector<TrialSpec>& trials,
                                       const std::vector<TrainState>& states, const StackOptions& options);
int64_t cuda_stack_limit(const TrialSpec& trial, const std::string& device);

}  // namespace rankscope
