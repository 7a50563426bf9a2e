// What the evaluator keeps of the full network, for those who start from it. Included by files that know
// torch.
#pragma once

#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "importance/evaluator.h"
#include "model/batch.h"
#include "model/block.h"
#include "pass/crossing.h"

namespace rankscope {

/// The full network on one batch, at one block.
struct KeptBlock {
  at::Tensor x;           // what the block is given
  BlockState attended;    // attention has run and nothing is written yet; its value is undefined where
                          // something stands between the heads and the output map
  at::Tensor z;           // [N, H, d_v]
  BlockState before_mlp;  // undefined stream where there is no MLP
};

/// Where in a block's steps the kept states are: the step that follows them.
struct Resume {
  size_t attended = 0, before_mlp = 0;
  double scale = 1.0;  // of the output map
};
Resume resume_points(const BlockPlan& plan, const BlockSpec& block);

struct AskedRows {
  at::Tensor rows, ids;          // on the device; ids -1 where nothing is asked
  std::vector<int64_t> offsets;  // [S + 1] into rows
};

struct Evaluator::Impl {
  Job job;
  const ModelSpec& spec;
  std::vector<Batch> batches;
  std::vector<AskedRows> asked;              // by batch
  std::vector<std::vector<KeptBlock>> kept;  // by layer, by batch
  std::vector<at::Tensor> last;              // behind the last block, by batch
  std::vector<at::Tensor> read;              // what the vocabulary multiplies, or the last hidden state
  Weights final_norm, unembed;
  Judged full;
  std::vector<int64_t> tokens_asked;  // by sample
  double flops = 0, unit = 0;

  explicit Impl(const Job& job);
  void run_full();
  /// An error, at once or when the crossing reads it, where x at this site is not finite or its squares
  /// overflow, as in a scan.
  void require_finite(const at::Tensor& x, size_t batch, const std::string& site, Crossing& crossing) const;
  void require_loss(size_t batch) const;
  int64_t number_of(int64_t sample) const;
  Weights block_weights(int64_t layer);
  /// The last hidden state of the rows that count, after the final norm.
  at::Tensor ended(const at::Tensor& x, size_t batch) const;
  /// What the vocabulary multiplies, of such rows.
  at::Tensor readable(const at::Tensor& ended) const;
  double block_cost(const BlockSpec& block, const Batch& batch) const;
  double readout_cost(size_t batch) const;
  /// What networks give, by batch, held against the full one's: states are those that `ended` gives.
  std::vector<Judged> judge(const std::vector<std::vector<at::Tensor>>& by_network);
  /// By sample, of numbers for each row of a batch.
  void file(const at::Tensor& nll, const at::Tensor& kl, size_t batch, Judged& out) const;
};

}  // namespace rankscope
