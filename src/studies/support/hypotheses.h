// What the theorem on rank collapse (theory/collapse_bound.h) asks of a network, measured in the network as
// it is, at every depth, in split arithmetic.
#pragma once

#include "studies/support/readings.h"
#include "tasks/token_task.h"
#include "tensors/weights.h"

namespace rankscope {

/// Readings by depth, 0 being the input of the first block, over the first `sequences` of the set:
///   residual_log10, local_exponent  relative residual in the composite norm, and how fast it falls
///   (METRICS.md) spread                          the same in Frobenius' norm use KL(answers | those with the
///   tokens of this depth replaced by their mean)
///                                   / KL(answers | mean answer); not there where all answers are alike
/// and of the attention in front of a depth, at the tokens that it reads:
///   oscillation                     largest range of a row of scores, without what all queries share, in
///   nats holds                           share of sequences in which that is below the 1.256 that the proof
///   needs margin                          sqrt(c) r; the bound shrinks only below 1 lambda, lambda_allowed
///   Lipschitz constant of the MLP by its weights, and what the bound allows:
///                                   1 / (c r^2)
/// The network is a post-norm one without a final norm, its words those of samples_of(set).
std::vector<Readings> read_hypotheses(const ModelSpec& spec, WeightSource& source, const TokenSet& set,
                                      int64_t sequences);

}  // namespace rankscope
