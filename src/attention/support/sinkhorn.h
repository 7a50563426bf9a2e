// Attention normalised over queries as well as over keys: scores minus a potential per key, then softmax over
// keys.
//
//   round 1       v_j = log sum_i exp(s_ij)                 every key is shared out among the queries
//   each further  u_i = log sum_j exp(s_ij - v_j),  v_j = log sum_i exp(s_ij - u_i)
//   the pattern   softmax_j(s_ij - v_j)
//
// One round is doubly normalised attention, which is one step of expectation maximisation; many are
// Sinkhorn's.
#pragma once

#include "attention/support/scores.h"

namespace rankscope {

class DoublyNormalised : public PreparedAttention {
 public:
  DoublyNormalised(const AttentionInput& in, int64_t rounds);
  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override;

 private:
  at::Tensor seen(int64_t first_row, int64_t rows) const;  // of all samples, -inf where hidden
  at::Tensor over_queries(const at::Tensor& u) const;      // v of u [S, H, T]
  at::Tensor over_keys() const;                            // u of v

  Scores scores_;
  at::Tensor v_;  // [S, H, T']
};

/// The form that may be causal: a key is shared out among the queries up to the one that asks,
///   v_ij = log sum_{i' <= i} exp(s_i'j),  pattern = softmax_j(s_ij - v_ij).
/// The bound on column sums does not carry over. Without a causal mask a query sees all others, and this is
/// one round.
std::unique_ptr<PreparedAttention> prepare_prefix_normalised(const AttentionInput& in);

}  // namespace rankscope
