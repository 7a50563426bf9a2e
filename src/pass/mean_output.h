// How far outputs are from their mean over the corpus: what there is to lose when tokens no longer differ.
#pragma once

#include <map>

#include "pass/pass.h"

namespace rankscope {

/// By sample: mean over its tokens of KL(p || mean p), nats, the mean over all tokens of all samples; without
/// a vocabulary |y - mean y|^2 / |y|^2 of the last hidden state.
std::map<int64_t, double> divergence_from_mean(const FinalState& full, const PassPlan& plan);

}  // namespace rankscope
