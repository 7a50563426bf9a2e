// `rankscope plan`: what a network can do without, by measured loss, and the proof of it. Knows nothing of
// torch.
//
// Candidates are single heads and the maps of single layers cut to an eighth, a quarter and half of their
// rank. They are ordered by what they cost alone for what they save, and taken in that order in steps that
// double while they fit the budget and halve where they do not; the loss is measured after each on the texts
// of the search. The last fifth of the texts is read once, at the end.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "pass/request.h"

namespace rankscope {

struct PlanRequest {
  ScanRequest scan;                            // model, input, device
  double budget = 0.02;                        // nats of loss
  std::optional<std::filesystem::path> write;  // a folder for the model that the plan leaves
};

/// A loss, how much more it is than the full network's, and the error of that.
struct PlannedLoss {
  double full = 0, planned = 0, gained = 0, error = 0;
  int64_t samples = 0;
};

struct PlanStep {
  std::vector<std::string> what;  // "head L5H3", "QK of layer 3 to rank 8"
  double gained = 0;              // loss of everything taken so far and this, less that of the full network
  bool taken = false;
};

struct PlannedLayer {
  int64_t layer = 0;
  std::vector<int64_t> heads_out = {};
  int64_t heads = 0;
  int64_t qk = 0, ov = 0, kv = 0;  // ranks; 0: left whole
  int64_t full_qk = 0, full_ov = 0, full_kv = 0;
};

struct PlanResult {
  std::string architecture;
  double budget = 0;
  std::vector<PlanStep> steps;
  std::vector<PlannedLayer> layers;
  int64_t parameters = 0, saved = 0;  // of the whole network, and fewer in factored form
  double cache_saved = 0;             // share of the cache of keys and values
  PlannedLoss search, held_out, all;
  Json rank_pattern;               // of PEFT: module to rank
  std::vector<std::string> notes;  // what was not tried, and why
  double passes = 0;               // forward passes of the search's samples
};

PlanResult make_plan(const PlanRequest& request, const ProgressCallback& progress);

}  // namespace rankscope
