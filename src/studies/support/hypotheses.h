// What the theorem on rank collapse (theory/collapse_bound.h) asks of a network, measured in the network as
// it is, at every depth, in split arithmetic.
#pragma once

#include "studies/support/readings.h"
#include "tasks/token_task.h"
#include "tensors/weights.h"

namespace rankscope {

/// Readings by depth, 0 being the input of the first block, over the first `sequences` of the set.
///
/// residual: relative residual in the composite norm, mean over sequences, as published; residual_log10: mean
/// of its logarithms, not there where one of them is zero; local_exponent: how fast that falls (METRICS.md).
///
/// spread: the same in Frobenius' norm, geometric mean.
///
/// use: KL(answers | those with the tokens of this depth replaced by their mean) / KL(answers | mean answer);
/// not there where all answers are alike.
///
/// And of the attention in front of a depth, at the tokens that it reads:
///
/// oscillation: the largest range of a row of scores, without what all queries share, in nats; holds: the
/// share of sequences in which that is below the 1.256 that the proof needs.
///
/// margin: sqrt(c) r, below 1 where the bound shrinks.
///
/// lambda: the Lipschitz constant of the MLP, at most, by its weights; lambda_allowed: what the bound allows
/// it to be, 1 / (c r^2).
///
/// The network is a post-norm one without a final norm, its words those of samples_of(set).
std::vector<Readings> read_hypotheses(const ModelSpec& spec, WeightSource& source, const TokenSet& set,
                                      int64_t sequences);

}  // namespace rankscope
