// Softmaxes over a vocabulary whose logits come tile by tile, and how far one is from another: sums in
// double, so that no tile of thousands of words rounds away what the next ones add. Included by files that
// know torch.
#pragma once

#include <cstdint>

#include "base/tensor_fwd.h"

namespace rankscope {

/// What is known of each row after some tiles.
struct RunningSoftmax {
  at::Tensor most, sum;  // [N]: the largest logit so far, and the sum of exp(logit - most)

  /// Of no tile yet, on the device of `like`.
  static RunningSoftmax of(int64_t rows, const at::Tensor& like);
  /// Some of the rows, in the same memory.
  RunningSoftmax part(int64_t first, int64_t count) const;

  struct Tile {
    at::Tensor x, p;    // [N, words]: the logits, and exp(x - most)
    at::Tensor shrink;  // [N]: by what sums over earlier tiles shrink, as `most` has grown
  };
  Tile add(const at::Tensor& x) const;
  at::Tensor log_z() const;
};

/// The tile's part of E_p[a - b], p being the softmax of a: added to `weighted` [N]. Writes over b's `p`.
void add_difference(const at::Tensor& weighted, const RunningSoftmax::Tile& a, RunningSoftmax::Tile& b);

/// KL(a | b) = E_p[a - b] - log Z_a + log Z_b; not below zero, where rounding may have left it.
at::Tensor kl_of(const RunningSoftmax& a, const RunningSoftmax& b, const at::Tensor& weighted);

}  // namespace rankscope
