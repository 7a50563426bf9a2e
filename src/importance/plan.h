// `rankscope plan`: what a network can do without, by measured loss, and the proof of it. Knows nothing of
// torch.
//
// Candidates are single heads and the maps of single layers cut to an eighth, a quarter and half of their
// rank. A few of the samples say what each costs alone. The cheapest for what they save beside all that is
// taken already come next, in steps that double while they fit the budget and shrink where they do not: a
// step fits when the upper end of the confidence interval of its loss, on the samples of the search that did
// not order, is within the budget (importance/evidence.h). The last fifth of the samples is read once, at the
// end.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "importance/evidence.h"
#include "pass/request.h"

namespace rankscope {

struct PlanRequest {
  ScanRequest scan;      // model, input, device
  double budget = 0.02;  // nats of loss
  bool write = false;    // the model will be written: notes say what does not go with it (side_files.h)
};

/// A loss beside the full network's on the same samples.
struct PlannedLoss {
  double full = 0, planned = 0;
  Rise rise = {};
  double upper = 0;     // end of the interval: at the level of the look that took it, or kHeldLevel
  int64_t samples = 0;  // that ask for a token
};

struct PlanStep {
  std::vector<std::string> what;  // "head L5H3", "QK of layer 3 to rank 8"
  Rise rise = {};                 // of everything taken so far and this
  double upper = 0;
  bool taken = false;
  bool undecided = false;  // it may be within the budget, and it may not
};

struct PlannedLayer {
  int64_t layer = 0;
  std::vector<int64_t> heads_out = {};
  int64_t heads = 0;
  int64_t qk = 0, ov = 0, kv = 0;  // ranks; 0: left whole
  int64_t full_qk = 0, full_ov = 0, full_kv = 0;
  bool can_share = false, shares = false;  // reads with the patterns of the layer before

  bool has_heads() const { return static_cast<int64_t>(heads_out.size()) < heads; }
  /// What is left of a map: its rank, the full one where it is whole, 0 where no head has it any more.
  int64_t left(int64_t rank, int64_t full) const { return !has_heads() ? 0 : rank > 0 ? rank : full; }
};

/// Layers that could read with the patterns of the layer before: measured by themselves, beside the plan and
/// within the same budget.
struct SharingPlan {
  std::vector<PlanStep> steps;
  int64_t saved = 0;  // parameters
  PlannedLoss search, held_out;
};

struct PlanResult {
  std::string architecture;
  double budget = 0;
  std::vector<PlanStep> steps;
  std::vector<PlannedLayer> layers;
  int64_t changes = 0;                // heads that are out, and maps that are cut
  int64_t parameters = 0, saved = 0;  // of the whole network, and fewer in factored form (factored.h)
  double cache_saved = 0;             // share of the cache of keys and values, in that form
  PlannedLoss search, held_out, all;
  SharingPlan sharing;
  bool more_to_read = false;       // the input has samples that --samples left out
  std::string undecided;           // why nothing is changed though it might be free; empty otherwise
  Json rank_pattern;               // of PEFT: module to the rank that its weight has after the plan
  std::vector<std::string> notes;  // what was not tried, and why
  double passes = 0;               // forward passes of the search's samples
  ScanResult report;               // the same as a table, sentences and a manifest (plan_report.h)
  /// Writes the model that the plan leaves into a folder (planned_model.h). Apart from the search, so that a
  /// full disk does not lose the plan.
  std::function<void(const std::filesystem::path& folder)> write;
};

PlanResult make_plan(const PlanRequest& request, const ProgressCallback& progress);

}  // namespace rankscope
