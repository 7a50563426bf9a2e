// A frozen network is a chain of steps, z -> [z +] sum over branches of e_m(... e_1(z)): affine, applied
// without ever being formed.
#pragma once

#include <memory>
#include <vector>

#include "base/tensor_fwd.h"
#include "operator/part.h"

namespace rankscope {

enum class PartKind { attention, mlp, norm, dense };

struct Element {
  PartKind kind;
  int layer;  // -1: after the last block
  std::shared_ptr<const LinearPart> part;
};

using Branch = std::vector<Element>;

/// Post-norm blocks are four steps: [A] with the skip, [N1], [M] with the skip, [N2]. Pre-norm blocks are
/// two: [N1, A] and [N2, M], both with the skip. A parallel block is one: [N1, A] + [N2, M].
struct FrozenStep {
  bool skip;
  std::vector<Branch> branches;
};

/// x -> T x + b. Vectors are [N, d], or [K, N, d] for K of them side by side.
class AffineChain {
 public:
  void push(FrozenStep step) { steps_.push_back(std::move(step)); }
  const std::vector<FrozenStep>& steps() const { return steps_; }

  at::Tensor apply(const at::Tensor& x) const;    // T x
  at::Tensor affine(const at::Tensor& x) const;   // T x + b
  at::Tensor adjoint(const at::Tensor& y) const;  // T^T y

  /// This one first, then `next`: (T2 T1, T2 b1 + b2).
  AffineChain then(const AffineChain& next) const;

 private:
  std::vector<FrozenStep> steps_;
};

}  // namespace rankscope
