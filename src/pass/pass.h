// The observed pass: blocks in the outer loop, (state, batch) in the inner one. Weights are read once, and
// variants share every prefix of the network in which they agree.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
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

/// A stream that runs before the network's own and is read by it: an encoder.
struct StreamPlan {
  std::string name;
  std::vector<std::vector<Batch>> inputs;  // as PassPlan::inputs: the same samples in the same batches
  std::vector<bool> layers;
  ReportSample* report_sample = nullptr;
  std::shared_ptr<std::vector<FinalState>> states = {};  // how it ended, when it has run

  /// How it ended for a variant; nullptr where the variant did not come so far.
  const FinalState* state_of(size_t variant) const;
};

/// What lenses left for themselves at the next block (LensContext::before), by lens and variant.
using LensMemory = std::map<std::pair<std::string, std::string>, std::shared_ptr<const void>>;

struct PassPlan {
  std::vector<Variant>
      variants;  // the first one must not fail; another that overflows is dropped with a note
  std::vector<WeightSource*> sources;
  std::vector<std::vector<Batch>> inputs;
  std::vector<const Lens*> lenses;
  std::vector<bool> layers;  // which ones the lenses see
  uint64_t seed = 0;
  double sink = Thresholds()["sink"];
  ReportSample* report_sample = nullptr;  // takes what a report shows of the first variant
  std::string device = "cpu";             // whose memory the batches must fit
  bool late = false;  // numbers are read while the next layer runs, as from a GPU, wherever they are
  std::shared_ptr<LensMemory> left = std::make_shared<LensMemory>();
  std::vector<StreamPlan> streams = {};  // those that the variants read, in their order
  std::string stream = {};               // what rows call this one, where there are several
  /// Variants that were dropped (of a stream, "encoder: -norm"): where they were not finite.
  std::map<std::string, std::string, std::less<>> not_finite = {};
};

/// Runs the plan's streams first, each as a network of its own. Where a GPU's memory does not suffice, the
/// plan's batches are halved, with a note, until it does.
std::vector<FinalState> run_pass(PassPlan& plan, ResultTable& table, std::vector<std::string>& notes,
                                 const ProgressCallback& progress);

/// Rows of the attention to another stream have this in the place of a stream, and those of the stream that
/// ends in the readout the other.
constexpr const char *kCrossStream = "cross", *kLastStream = "decoder";

/// What a variant is called that was dropped from a stream; its own name where there is one stream alone.
std::string in_stream(const std::string& stream, const std::string& variant);

/// How many (block, state) steps the plan takes: what progress counts, and what sharing prefixes saves.
int64_t count_steps(const PassPlan& plan);

}  // namespace rankscope
