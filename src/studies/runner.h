// A runner turns configurations into numbers: training a model, solving for optimal weights, counting votes.
// One file of studies/runners/ each; a study names one. What drives runners (the sweep) knows only this.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "studies/config.h"

namespace rankscope {

/// One trial to carry out. The runner keeps its checkpoint (checkpoint.safetensors) and its curve
/// (curve.jsonl) in `folder`, which exists, and goes on from a checkpoint that is there.
struct TrialJob {
  std::string id;
  Config config;
  std::filesystem::path folder;
};

/// What came of one trial. `failed` says why in `reason` (diverged at step 312: the loss is not finite).
struct Outcome {
  bool failed = false;
  std::string reason;
  std::map<std::string, double> values;  // "test_mse", "test_mse_stderr", "best_test_mse", "lower_bound", ...
  std::string precision = {};  // of training: "fp32", or "tf32" where any step was; empty: none, or not known
};

struct RunProgress {
  int64_t steps_done = 0, steps_total = 0;  // of this call, over the trials of the stack
  double flops_done = 0;                    // in this call
  std::string what;                         // "loss 0.0213"
};

struct RunContext {
  std::string device = "cpu";      // or "cuda", "cuda:1"
  int threads = 1;                 // on the CPU
  std::string precision = "auto";  // of products on CUDA: fp32, tf32, or what the runner finds exact enough
  double checkpoint_seconds = 60;  // at least this long between two checkpoints of a trial
  const std::atomic<bool>* stop = nullptr;           // set from outside: write a checkpoint and return
  std::function<void(const RunProgress&)> progress;  // now and then
  std::function<void(size_t job, const Outcome&)> finished;  // once a trial, as soon as it is known
};

struct Runner {
  std::string_view name;
  std::string_view summary;
  std::vector<Key> keys;
  /// Every result that a trial of it may have, by name: what figures and published tables of a study may ask
  /// for. Which of them a trial has depends on its configuration. Empty: nobody knows before it ran.
  std::vector<std::string> results = {};
  /// Refuses what cannot be (heads that do not divide the width), before anything runs.
  void (*check)(const Config& config);
  /// Floating-point operations of the trial without what its stack shares: 2 per multiply-add, training 3
  /// times the forward pass.
  double (*flops)(const Config& config);
  /// Trials with equal keys may run in one stack; empty: always alone.
  std::string (*stack_key)(const Config& config) = [](const Config&) { return std::string(); };
  /// How many such trials fit together on the device as it is now; at least 1.
  int64_t (*stack_limit)(const Config& config, const std::string& device) =
      [](const Config&, const std::string&) -> int64_t { return 1; };
  /// Carries out a stack. Returns when all are finished, or early, with checkpoints written, after `stop`.
  void (*run)(std::span<const TrialJob> jobs, const RunContext& context);
  /// Writes the trained model of a finished trial as a folder that `scan` reads; null where there is none.
  void (*export_model)(const TrialJob& job, const std::filesystem::path& folder) = nullptr;
  /// Floating-point operations that a stack needs once, however many trials it has; null: none.
  double (*shared_flops)(const Config& config) = nullptr;
  bool cuda = false;      // whether it runs on such a device too; all run on the CPU
  bool one_core = false;  // its trials are too small to be shared out: more threads take as long
};

/// Every runner, alphabetically (generated from the file names); lives in librankscope.so.
const std::vector<const Runner*>& runners();

}  // namespace rankscope
