// The forward pass of a batch with its attention matrices, norm statistics and activation gains held at what
// this input gave: an affine operator, exact at the input. Memory O(L (N d + H N^2)) beside the weights.
#pragma once

#include <memory>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "operator/chain.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

class FrozenNetwork {
 public:
  /// Costs one forward pass; the biases cost an application when first asked for. `source` and what it reads
  /// from must outlive this. An activation that is not finite is an error that names the block.
  FrozenNetwork(const ModelSpec& spec, WeightSource& source, const Batch& batch);
  FrozenNetwork(FrozenNetwork&&) noexcept;
  ~FrozenNetwork();

  const at::Tensor& input() const;   // [N, d], the residual stream before the first block
  const at::Tensor& output() const;  // [N, d], after the final norm: trunk T x + b
  const at::Tensor& bias() const;    // [N, d], b of the trunk; not to be asked for from two threads at once

  const AffineChain& trunk() const;  // input to output
  /// output to what the vocabulary matrix multiplies, [N, w]; no step at all for a linear head.
  const AffineChain& head() const;
  /// The head's output and the bias of trunk and head together, [N, w].
  const at::Tensor& head_output() const;
  const at::Tensor& head_bias() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope
