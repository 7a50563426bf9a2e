// Which trials run together.
#include <algorithm>
#include <map>

#include "sweep/schedule.h"

namespace rankscope {

std::vector<TrialStack> plan_stacks(const Runner& runner, const std::vector<TrialJob>& jobs,
                                    const std::string& device, int64_t workers) {
  std::map<std::string, std::vector<TrialJob>> groups;
  for (size_t i = 0; i < jobs.size(); ++i) {
    std::string key = runner.stack_key(jobs[i].config);
    if (key.empty()) key = "alone " + jobs[i].id;
    groups[key].push_back(jobs[i]);
  }
  std::vector<TrialStack> out;
  for (auto& [key, group] : groups) {
    const auto count = static_cast<int64_t>(group.size());
    const int64_t fits = device.empty() ? count : runner.stack_limit(group.front().config, device);
    // What a group shares would be done again by each worker, all writing into the same folder.
    const int64_t takers = runner.shared_flops == nullptr ? workers : 1;
    const int64_t limit = std::clamp<int64_t>(fits, 1, (count + takers - 1) / takers);
    const int64_t stacks = (count + limit - 1) / limit;
    for (int64_t s = 0; s < stacks; ++s) {
      TrialStack& stack = out.emplace_back();
      for (int64_t i = s * count / stacks; i < (s + 1) * count / stacks; ++i)
        stack.jobs.push_back(std::move(group[static_cast<size_t>(i)]));
      stack.flops = stack_flops(runner, stack.jobs);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const TrialStack& a, const TrialStack& b) { return a.flops > b.flops; });
  return out;
}

double stack_flops(const Runner& runner, const std::vector<TrialJob>& jobs) {
  double sum = runner.shared_flops == nullptr ? 0 : runner.shared_flops(jobs.front().config);
  for (const TrialJob& job : jobs) sum += runner.flops(job.config);
  return sum;
}

std::vector<TrialJob> pending_jobs(const Store& store, const Runner& runner) {
  std::vector<TrialJob> out;
  for (const StoredTrial& trial : store.trials())
    if (trial.state == TrialState::pending)
      out.push_back({trial.id, parse_canonical(trial.config, runner.keys), store.trial_folder(trial.id)});
  return out;
}

}  // namespace rankscope
