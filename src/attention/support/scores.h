// What most variants begin with: scale Q K^T, positions turned in or added, capped where the spec says so.
#pragma once

#include "attention/variant.h"

namespace rankscope {

/// Queries and keys as they meet, turned by their places where the spec says so: [S, T, H, d], [S, T', KV,
/// d].
struct TurnedHeads {  // whoever handles it includes ATen
  at::Tensor q, k;
};
TurnedHeads turned_heads(const AttentionInput& in);

/// Which keys of the rows `index` [n] are hidden, [n, keys]; undefined where all are seen.
at::Tensor hidden_keys(const AttentionSpec& spec, const at::Tensor& index, int64_t keys);
/// masked_softmax, where it is known which keys are hidden.
at::Tensor softmax_seen(at::Tensor scores, const at::Tensor& hidden, at::Tensor* masked,
                        const at::Tensor& sinks);

class Scores {
 public:
  explicit Scores(const AttentionInput& in);

  /// Rows of every head's scores, [count, H, rows, T'], nothing hidden.
  at::Tensor tile(int64_t first, int64_t count, int64_t first_row, int64_t rows) const;
  /// The same without cap and additions: scaled products of turned queries and keys.
  at::Tensor products(int64_t first, int64_t count, int64_t first_row, int64_t rows) const;

  const AttentionSpec& spec() const { return spec_; }
  const at::Tensor& q() const { return q_; }  // [S * H, T, d_qk], turned
  const at::Tensor& k() const { return k_; }  // [S * H, T', d_qk]
  int64_t samples() const { return q_.size(0) / spec_.heads; }
  int64_t queries() const { return queries_; }
  int64_t keys() const { return keys_; }

 private:
  const AttentionSpec& spec_;
  int64_t queries_, keys_;
  at::Tensor q_, k_;
  at::Tensor near_;  // [S, H, T or 1, T']
};

}  // namespace rankscope
