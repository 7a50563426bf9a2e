// How far a variant's output is from the full model's: output_kl, or output_error without a head.
#pragma once

#include <string>
#include <vector>

#include "pass/pass.h"

namespace rankscope {

/// Appends one row per variant of `others` (and the per-sample rows): output_kl, KL(full || variant) of the
/// output distribution, mean over tokens, where both models have a head over the same vocabulary; else
/// output_error, the relative error of the last hidden state. The vocabulary matrix is read in tiles, once
/// for all variants of a source.
void compare_outputs(const FinalState& full, const PassPlan& plan,
                     const std::vector<const FinalState*>& others, const PassPlan& other_plan,
                     ResultTable& table, std::vector<std::string>& notes);

/// Where a model's output is compared with itself: at the vocabulary, or at the last hidden state without a
/// head.
std::string output_site(const ModelSpec& spec);
/// The metric that does: output_kl or output_error.
std::string output_metric(const ModelSpec& spec);
/// The last hidden state: after the final norm where there is one.
std::string hidden_site(const ModelSpec& spec);

}  // namespace rankscope
