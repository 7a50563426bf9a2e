// Attention matrices of queries and keys that a study makes up, by the variants themselves: one head,
// float64.
#pragma once

#include <string>

#include "base/tensor_fwd.h"

namespace rankscope {

struct MadeUpHead {
  std::string variant = "softmax";  // with its options: "sinkhorn:rounds=3"
  double scale = 1.0;               // of the scores
  double share = 0.5;               // hybrid_normalised: how much of it is doubly normalised
};

/// q [n, d] and k [m, d] to the pattern [n, m], nothing hidden; the queries stand behind all keys.
at::Tensor made_up_pattern(const MadeUpHead& head, const at::Tensor& q, const at::Tensor& k);

/// The same from the scores [n, m] themselves.
at::Tensor pattern_of_scores(const MadeUpHead& head, const at::Tensor& scores);

/// What queries q [n, d] read from a state that the delta rule wrote from keys [m, d] one after another, as
/// shares of the values: [n, m]. `keep` below 1: the state forgets so much with every key.
at::Tensor delta_pattern(const at::Tensor& q, const at::Tensor& k, double keep);

/// exp of the entropy of sigma / sum sigma.
double entropy_rank(const at::Tensor& matrix);
/// Singular values above `tolerance` times the largest.
double rank_above(const at::Tensor& matrix, double tolerance);

/// Standard normal numbers [rows, columns]: a function of seed and stream.
at::Tensor normal_matrix(uint64_t seed, uint32_t stream, int64_t rows, int64_t columns);

}  // namespace rankscope
