// Softmax attention over a text that is too long for its matrix: what it gives, what is known of the matrix
// as a whole, and some of its rows where somebody asks for them.
#pragma once

#include <memory>

#include "attention/variant.h"
#include "ops/long_attention.h"

namespace rankscope {

class LongSoftmax {
 public:
  /// With values v [S, T', VH, d_v]. None where the spec says more than scaled products of queries and keys,
  /// a mask and a learned sink, or where no kernel takes the shapes: then there are tiles
  /// (PreparedAttention).
  static std::unique_ptr<LongSoftmax> prepare(const AttentionInput& in, const at::Tensor& v);

  /// Writes what the heads carry into `out` [S, T, H, d_v].
  LongStatistics run(bool statistics, const at::Tensor& out) const;

  /// Rows `index` (int64, on the device) of heads [first_head, first_head + heads) of samples
  /// [first, first + count): [count, heads, n, T'], or the scores they are made of, -inf where a key is
  /// hidden.
  enum class Of { pattern, scores };
  at::Tensor rows(int64_t first, int64_t count, int64_t first_head, int64_t heads, const at::Tensor& index,
                  Of what) const;

 private:
  LongSoftmax(const AttentionSpec& spec, LongTensors x) : spec_(spec), x_(std::move(x)) {}

  const AttentionSpec& spec_;
  LongTensors x_;
};

}  // namespace rankscope
