// The forward pass of a stack of trials by fused operators: every product takes all trials at once, skip and
// norm are one operation, Q, K and V one product. For networks it was written for, and no others; the plain
// interpretation (train/plain_forward.h) runs the rest, and a contract test holds the two together.
#pragma once

#include <vector>

#include "tasks/task.h"
#include "train/views.h"

namespace rankscope {

/// Whether the whole description is one that the operators below compute. A word they do not know makes it
/// somebody else's, also one that was added after them: what they know is built from the few words they read
/// and compared with all of them.
bool fused_forward_covers(const ModelSpec& spec);

/// The answers [.., sequences, answers, answer width]. `specs` has one entry a trial: heads and score scales
/// may differ between the trials of a stack. The views are merged.
at::Tensor fused_forward(const std::vector<const ModelSpec*>& specs, const ParameterViews& parameters,
                         const TaskBatch& batch);

}  // namespace rankscope
