// Patterns of a variant for queries and keys given as matrices: one sample, one head, float64.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "attention/variant.h"

namespace rankscope::test {

struct OneHead {
  std::string variant;
  double scale = 1.0;
  bool causal = false;
  Weights weights = {};
};

/// q [T, d], k [T', d] to the pattern [T, T'].
inline at::Tensor pattern_of(const OneHead& how, const at::Tensor& q, const at::Tensor& k) {
  AttentionSpec spec;
  spec.variant = how.variant;
  spec.d_qk = spec.d_v = q.size(1);
  spec.scale = how.scale;
  spec.causal = how.causal;
  const std::string name = "attn";
  const at::Tensor q4 = q.unsqueeze(0).unsqueeze(2), k4 = k.unsqueeze(0).unsqueeze(2), none;
  const at::Tensor places = at::arange(q.size(0)).unsqueeze(0),
                   key_places = at::arange(k.size(0)).unsqueeze(0);
  return attention_variant(spec.variant)
      .prepare({spec, how.weights, name, q4, k4, places, key_places, none})
      ->pattern(0, 1, 0, q.size(0))
      .select(0, 0)
      .select(0, 0);
}

/// The same from scores [T, T'] themselves: keys are unit vectors.
inline at::Tensor pattern_of(const OneHead& how, const at::Tensor& scores) {
  return pattern_of(how, scores, at::eye(scores.size(1), scores.options()));
}

inline at::Tensor normals(int64_t rows, int64_t columns) { return at::randn({rows, columns}, at::kDouble); }
inline double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

inline int64_t rank_of(const at::Tensor& a, double tolerance) {
  const at::Tensor s = at::linalg_svdvals(a);
  return (s > tolerance * s[0]).sum().item<int64_t>();
}

/// exp of the entropy of sigma / sum sigma.
inline double effective_rank(const at::Tensor& a) {
  const at::Tensor s = at::linalg_svdvals(a), p = s / s.sum();
  return std::exp(-(p * at::log(p.clamp_min(1e-300))).sum().item<double>());
}

}  // namespace rankscope::test
