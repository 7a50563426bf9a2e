#pragma once

#include "train/stack.h"

namespace rankscope {

/// What no faster stack takes (sets, dropout, penalties, clipped gradients), on any device: one trial after
/// another, the whole batch through the plain interpretation of its network.
std::unique_ptr<Stack> make_plain_stack(const std::vector<TrialSpec>& trials,
                                        const std::vector<TrainState>& states, const StackOptions& options);

}  // namespace rankscope
