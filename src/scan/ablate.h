// Taking heads out one at a time and together, and what the output says to it: scan --ablate.
#pragma once

#include <string>
#include <vector>

#include "pass/request.h"

namespace rankscope {

class WeightSource;
struct Batch;
struct Sample;

struct Ablation {
  WeightSource& source;
  const std::vector<Sample>& samples;
  const std::vector<Batch>& batches;  // of the samples
  const std::vector<bool>& layers;
  const Thresholds& thresholds;
  const ProgressCallback& progress;
  std::string device = "cpu";
};

/// Heads whose output varies by less than `dead` of the stream (head_varied_rel of the table) are candidates.
/// Each is replaced by its mean over the corpus ("-head-mean:L5H3") and by what its biases alone write
/// ("-head-bare:L5H3"); those whose mean costs less than epsilon go once more, together
/// ("-heads-mean:L5H3+L7H0"), and where that costs more than epsilon, in pairs (importance/stand_ins.h). Rows
/// go into the table, names of variants into `names`.
void ablate_heads(const Ablation& ablation, ResultTable& table, std::vector<std::string>& notes,
                  std::vector<std::string>& names);

}  // namespace rankscope
