// Networks that differ from the full one in a few blocks, on their way through the blocks side by side.
// Included by files that know torch.
#pragma once

#include <functional>
#include <vector>

#include "base/tensor_fwd.h"
#include "importance/evaluator.h"

namespace rankscope {

/// Gets the numbers of a group's networks and what they end in, in that order, by batch.
using TakeGroup =
    std::function<void(const std::vector<size_t>& members, const std::vector<std::vector<at::Tensor>>& ends)>;

/// Runs the networks in groups as large as memory allows.
void each_group(Evaluator::Impl& e, const std::vector<Variation>& variations, const TakeGroup& take);

}  // namespace rankscope
