// The observed pass: blocks in the outer loop, (state, batch) in the inner one. Weights are read once, and
// variants share every prefix of the network in which they agree.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/table.h"
#include "base/tensor_fwd.h"
#include "lenses/lens.h"
#include "model/batch.h"
#include "pass/report_sample.h"
#include "pass/request.h"
#include "tensors/weights.h"

namespace rankscope {

struct Variant {
  std::string name;
  ModelSpec spec;
  size_t source = 0;        // into PassPlan::sources
  size_t input = 0;         // into PassPlan::inputs
  bool held_norms = false;  // norms divide by what the first variant's tokens gave there, not their own
};

struct PassPlan {
  std::vector<Variant>
      variants;  // the first one must not fail; another that overflows is dropped with a note
  std::vector<WeightSource*> sources;
  std::vector<std::vector<Batch>> inputs;
  std::vector<const Lens*> lenses;
  std::vector<bool> layers;  // which ones the lenses see
  uint64_t seed = 0;
  double sink = Thresholds()["sink"];
  ReportSample* shown = nullptr;  // takes what a report shows of the first variant
  std::string device = "cpu";     // whose memory the batches must fit
  bool late = false;  // numbers are read while the next layer runs, as from a GPU, wherever they are
};

/// The end of the network for the variants that share it: x after the final norm, one tensor a batch.
struct FinalState {
  FinalState();
  FinalState(FinalState&&) noexcept;
  FinalState& operator=(FinalState&&) noexcept;
  ~FinalState();
  std::vector<size_t> variants;
  std::unique_ptr<std::vector<at::Tensor>> x;  // [N, d] each
  /// The same tokens cut into these batches instead.
  void cut_into(const std::vector<Batch>& batches);
};

/// Where a GPU's memory does not suffice, the plan's batches are halved, with a note, until it does.
std::vector<FinalState> run_pass(PassPlan& plan, ResultTable& table, std::vector<std::string>& notes,
                                 const ProgressCallback& progress);

/// How many (block, state) steps the plan takes: what progress counts, and what sharing prefixes saves.
int64_t count_steps(const PassPlan& plan);

}  // namespace rankscope
