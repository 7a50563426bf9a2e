// For runners whose trials have nothing in common: each is one call.
#pragma once

#include "studies/runner.h"

namespace rankscope {

/// Hands every configuration to `solve`, until stopped.
template <typename Solve>
void run_one_by_one(std::span<const TrialJob> jobs, const RunContext& context, double (*flops)(const Config&),
                    const Solve& solve) {
  RunProgress progress;
  progress.steps_total = static_cast<int64_t>(jobs.size());
  for (size_t i = 0; i < jobs.size() && !context.stop->load(); ++i) {
    context.finished(i, solve(jobs[i].config));
    ++progress.steps_done;
    progress.flops_done += flops(jobs[i].config);
    if (context.progress) context.progress(progress);
  }
}

}  // namespace rankscope
