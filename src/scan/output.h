// How far a variant's output is from the full model's: output_kl.
#pragma once

#include <vector>

#include "scan/pass.h"

namespace rankscope {

/// Appends one output_kl row per variant of `others` (and the per-sample rows): KL(full || variant) of the
/// output distribution, mean over tokens, where both models have a head over the same vocabulary; else the
/// relative error of the last hidden state. The vocabulary matrix is read in tiles, once for all variants of
/// a source.
void compare_outputs(const FinalState& full, const PassPlan& plan,
                     const std::vector<const FinalState*>& others, const PassPlan& other_plan,
                     ResultTable& table, std::vector<std::string>& notes);

}  // namespace rankscope
