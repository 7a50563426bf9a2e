// Carries out the trials of a store: groups those that may train together into stacks, claims a stack, runs
// it, records every trial as soon as it is known.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "sweep/store.h"

namespace rankscope {

struct SweepOptions {
  std::string device = "cpu";
  int threads = 1;
  std::string precision = "auto";
  double lease_seconds = 120;  // a process that says nothing for so long is taken for dead
  double checkpoint_seconds = 60;
  const std::atomic<bool>* stop = nullptr;
  const std::atomic<bool>* lost = nullptr;  // the store cannot be reached any more: as good as a stop
};

/// How far the sweep is; handed out whenever something has changed.
struct SweepProgress {
  int64_t trials_done = 0, trials_total = 0;
  double flops_done = 0, flops_total = 0;             // of what was pending when it began
  double steps_per_second = 0, flops_per_second = 0;  // of the stack that runs
  std::string what;
};

struct SweepReport {
  int64_t done = 0, failed = 0;  // by this process
  int64_t left = 0;              // pending still, because it was stopped
  int64_t elsewhere = 0;         // running in other processes
};

struct TrialStack {
  std::vector<TrialJob> jobs;  // folders are those of the store
  double flops = 0;
};

/// Trials with one stack_key together, at most stack_limit of them, in stacks of nearly equal size, and in at
/// least `workers` stacks where there are enough trials that share nothing (shared_flops). The most expensive
/// stack comes first: the longest one decides when the last worker is finished, and what does not fit the
/// memory shows at once. Without a device nobody asks what fits: the worker that gets the stack will.
std::vector<TrialStack> plan_stacks(const Runner& runner, const std::vector<TrialJob>& jobs,
                                    const std::string& device, int64_t workers = 1);

/// Of all these trials in one stack: what each needs, and once what they share.
double stack_flops(const Runner& runner, const std::vector<TrialJob>& jobs);

/// The pending trials of the store as jobs.
std::vector<TrialJob> pending_jobs(const Store& store, const Runner& runner);

/// Until nothing is pending, or `stop`: then what runs is given back.
SweepReport run_study(Store& store, const Runner& runner, const SweepOptions& options,
                      const std::function<void(const SweepProgress&)>& progress);

/// One stack in the hands of a runner, wherever the results go: `record` takes each outcome once with the
/// trial's share of the time. When the runner throws, the trials without an outcome run again, one at a time,
/// so that a trial that cannot be carried out fails alone, with its own reason. Returns when the runner does;
/// jobs without an outcome then fail, unless stopped.
void run_stack(const Runner& runner, const TrialStack& stack, const SweepOptions& options,
               const std::function<void(const RunProgress&, double seconds)>& progress,
               const std::function<void(const TrialJob&, const Outcome&, double seconds)>& record);

}  // namespace rankscope
