// Layers that read with the patterns of the layer before them: they need no queries, no keys and no scores of
// their own. What that costs is measured; no published architecture has a word for it, so nothing is written.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "importance/evaluator.h"

namespace rankscope {

/// Layers whose heads are as many as those of the layer before, look at the same keys, and whose values and
/// outputs are one map each.
std::vector<int64_t> layers_that_can_share(const ModelSpec& spec);

/// Queries' and keys' parameters that the layers no longer need.
int64_t parameters_shared(const ModelSpec& spec, const std::set<int64_t>& layers);

/// The network in which these layers share, judged on the evaluator's samples. Of layers one behind another,
/// all read with the pattern of the one before the first.
Judged judge_shared(Evaluator& evaluator, const std::set<int64_t>& layers);

}  // namespace rankscope
