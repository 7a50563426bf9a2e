// How sinks fare as texts grow, and what they drain: scan --off length.
#pragma once

#include "model/batch.h"
#include "scan/ablate.h"

namespace rankscope {

/// Row `sink_slope_lengths` of every head that has one key in most samples: its margin over the samples whole
/// and halved, down to 32 tokens.
/// Causal models have the same from their prefixes, as `sink_slope`, and run nothing again. Row
/// `sink_drained` of every head whose margin is above the threshold: how little the value of its key writes
/// beside those of others.
void measure_lengths(const Ablation& what, const std::vector<Sample>& samples, const ScanRequest& request,
                     ResultTable& table, std::vector<std::string>& notes);

}  // namespace rankscope
