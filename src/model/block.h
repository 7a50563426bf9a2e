// One block of the pass over one packed batch, and what an observer sees of it.
#pragma once

#include <cstdint>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "model/spec.h"
#include "model/weights.h"

namespace rankscope {

/// Sees the tensors of a pass as they are computed; they are gone afterwards. `wants_*` lets the pass skip
/// work.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;
  virtual bool wants_pattern() const { return false; }
  virtual bool wants_heads() const { return false; }
  virtual void normalized(const at::Tensor& /*x [N, d]*/) {}  // pre-norm blocks: what attention reads
  /// Rows [first_row, + R) of the patterns of samples [first, + S) of the batch: [S, H, R, T].
  virtual void pattern(const at::Tensor& /*tile*/, int64_t /*first*/, int64_t /*first_row*/) {}
  virtual void heads(const at::Tensor& /*z [N, H, d_v]*/, const at::Tensor& /*W_O*/,
                     const at::Tensor& /*x [N, d]*/) {}
};

/// Matrices longer than this are computed and observed in tiles of rows.
constexpr int64_t kWholePattern = 512;

/// The four steps of a block, for those who share some of them. What attention writes for x [N, d], and u;
/// what the MLP writes, and the block's output. `written` is used up.
at::Tensor attention_output(const at::Tensor& x, const BlockSpec& block, const Weights& weights,
                            const Batch& batch, BlockObserver& observer);
at::Tensor after_attention(const at::Tensor& x, at::Tensor written, const BlockSpec& block,
                           const Weights& weights);
at::Tensor mlp_output(const at::Tensor& u, const BlockSpec& block, const Weights& weights);
at::Tensor after_mlp(const at::Tensor& u, at::Tensor written, const BlockSpec& block, const Weights& weights);

/// The block's output [N, d] for x [N, d]; x itself is left alone.
at::Tensor run_block(const at::Tensor& x, const BlockSpec& block, const Weights& weights, const Batch& batch,
                     BlockObserver& observer);

}  // namespace rankscope
