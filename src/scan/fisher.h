// How much of what tells tokens apart the output sees: scan --off fisher.
#pragma once

#include <string>
#include <vector>

#include "scan/ablate.h"

namespace rankscope {

/// Row `spread_fisher` of every layer, in front of its MLP: kappa = E|(X - 1 x^T) B|^2 / E|(X - 1 mu^T) B|^2
/// over content tokens, x the sample's mean token (causal: that of those up to each), mu the corpus's, and
/// B B^T the pull-back of the output's Fisher metric: the covariance of the gradients of log p(y) there, y
/// drawn from the network's own output, eight times. Two forward passes and eight backward ones; what was
/// spent is row `fisher_passes`.
void measure_fisher(const Ablation& what, uint64_t seed, ResultTable& table);

}  // namespace rankscope
