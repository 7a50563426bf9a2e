// One block of the pass over one packed batch, step by step, and what an observer sees of it. Used as it is
// by the scan, by the operator's readings and, differentiated, by training.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "model/sites.h"
#include "parts/program.h"
#include "spec/steps.h"
#include "tensors/weights.h"

namespace rankscope {

/// Sees the tensors of a block as they are computed, by the names of model/sites.h; they are changed or gone
/// afterwards. The block asks `wants` before it does anything for a site's sake alone, and may show what is
/// there anyway to one who does not want it.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;
  virtual bool wants(std::string_view /*site*/) const { return false; }
  /// Whole, [N, ...], or a tile, [S, H, R, T], with its place. What is factored comes as hook_z.
  virtual void see(std::string_view /*site*/, const at::Tensor&, const TilePlace& /*place*/ = {}) {}
};

/// Takes numbers out at random, in training. A scan has none.
class Dropout {
 public:
  virtual ~Dropout() = default;
  virtual at::Tensor operator()(const at::Tensor& x) = 0;
};

/// Matrices longer than this are computed and observed in tiles of rows.
constexpr int64_t kWholePattern = 512;

/// A block, ready to run: its steps and the programs of its branches.
struct BlockPlan {
  BlockPlan(const BlockSpec& block, int64_t width);
  std::vector<Step> steps;
  std::vector<Program> programs;  // by branch
};

/// Another stream that a branch reads.
struct OtherStream {
  const at::Tensor& x;  // [N', d]
  const Batch& batch;   // the same samples in the same order
};

/// What the steps of a block have in common.
struct BlockContext {
  const BlockPlan& plan;
  const Weights& weights;
  const Batch& batch;
  BlockObserver& observer;
  const std::map<std::string, OtherStream>* others = nullptr;
  Dropout* dropout = nullptr;
  bool differentiated = false;  // gradients are wanted: nothing is written into, patterns come whole
};

/// Where a block is: what it was given, the stream so far, and what the branch at hand has made.
struct BlockState {
  at::Tensor start, stream, value;  // [N, d]
  at::Tensor kept;                  // what the skip takes, where it is not the stream
};

BlockState block_start(const at::Tensor& x);
/// One step. `keep`: somebody else holds the state's tensors, so none of them is written into.
void run_step(const Step& step, const BlockContext& context, BlockState& state, bool keep = false);

/// Shows what the step shows of the state it left, where somebody else ran it. What a part shows while it
/// runs (ShownBy::part) is gone by then. A norm through which two branches read side by side is shown once.
void show_step(const Step& step, const BlockContext& context, const BlockState& state);

/// The block's output [N, d] for x [N, d]; x itself is left alone.
at::Tensor run_block(const at::Tensor& x, const BlockContext& context);
/// The same for one block of a network without other streams.
at::Tensor run_block(const at::Tensor& x, const BlockSpec& block, const Weights& weights, const Batch& batch,
                     BlockObserver& observer);

}  // namespace rankscope
