// What every part of a network is worth: scan --ablate, and the curves of scan --rank qk=1,2,4. Knows nothing
// of torch.
//
// Rows of the table (variant full; docs/IMPORTANCE.md):
//   head_zero_kl, head_zero_loss      one head out: KL from full, and what the loss gains; mlp_, layer_ and
//                                     expert_ the same; _mean_ and _resample_ put something in its place
//   head_estimate_kl, _loss           the same by gradients
//   prune_*                           heads out together, least important first; depth: how many
//   rank_qk_kl, rank_qk_loss, ...     maps cut; layer: one alone, or none: all; depth: the rank
#pragma once

#include <optional>
#include <vector>

#include "model/batch.h"
#include "pass/request.h"
#include "tensors/weights.h"

namespace rankscope {

struct ImportanceJob {
  const ScanRequest& request;
  WeightSource& source;
  const std::vector<Sample>& samples;
  std::optional<int64_t> mask;
  const ProgressCallback& progress;
};

/// Whether the request asks for anything of this.
bool wants_importance(const ScanRequest& request);

/// A wrong word is an error before anything runs.
void check_importance(const ScanRequest& request);

void add_importance(const ImportanceJob& job, ResultTable& table, std::vector<std::string>& notes);

}  // namespace rankscope
