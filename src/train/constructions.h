// Where a trial starts: drawn at random, or from a solution known on paper.
#pragma once

#include <string_view>
#include <vector>

#include "train/stack.h"

namespace rankscope {

/// By TrialSpec::start:
///   random     drawn from init_seed
///   identity   the first layer's heads together hold -beta I (farthest) or beta I (nearest), cut into rank-r
///   blocks of
///              coordinates; values copied, later layers and MLPs silent. At full rank this is the exact
///              solution as beta grows; below it, the best rank-r truncation of it.
std::vector<float> starting_parameters(const TrialSpec& trial);

/// They, with nothing trained yet.
TrainState starting_state(const TrialSpec& trial);

}  // namespace rankscope
