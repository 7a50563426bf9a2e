// How the output hangs on what the last block leaves: gradients of log p(y), y drawn from the network's own
// output at every token. The scores of different tokens are independent and have mean zero, so the gradient
// of their sum has the output's Fisher metric for its covariance, and one pass back serves all tokens of a
// sample.
#pragma once

#include <vector>

#include "base/tensor_fwd.h"
#include "importance/kept.h"

namespace rankscope {

class OutputScores {
 public:
  /// `loss`: one more direction, the gradient of each sample's loss.
  OutputScores(Evaluator::Impl& evaluator, int draws, bool loss)
      : e_(evaluator), draws_(draws), loss_(loss) {}

  size_t directions() const { return static_cast<size_t>(draws_) + (loss_ ? 1 : 0); }
  /// Of one batch: the gradient of each draw, then of the loss, behind the last block, [N, d]. A network
  /// without a vocabulary is taken for the mean of a normal distribution around its last hidden state: the
  /// scores are normal numbers.
  std::vector<at::Tensor> behind_last_block(size_t batch);

 private:
  std::vector<at::Tensor> at_the_readout(size_t batch);
  void rows(size_t batch, int64_t first, int64_t count, std::vector<at::Tensor>& out);
  at::Tensor drawn(const at::Tensor& cumulative, int draw, size_t batch, int64_t first) const;
  at::Tensor shares(size_t batch) const;
  uint32_t stream(size_t batch, int draw) const;  // of random numbers
  template <class Call>
  void each_tile(Call call);

  Evaluator::Impl& e_;
  int draws_;
  bool loss_;
};

}  // namespace rankscope
