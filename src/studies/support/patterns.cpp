#include "studies/support/patterns.h"

#include <ATen/ATen.h>

#include <cmath>

#include "attention/variant.h"
#include "base/philox.h"

namespace rankscope {
namespace {

const std::string kBranch = "attn";

at::Tensor one_head(const at::Tensor& x) { return x.unsqueeze(0).unsqueeze(2); }  // [1, n, 1, d]

AttentionSpec spec_of(const std::string& variant, int64_t width, double scale) {
  AttentionSpec spec;
  spec.variant = variant;
  spec.d_qk = spec.d_v = width;
  spec.scale = scale;
  return spec;
}

}  // namespace

at::Tensor made_up_pattern(const MadeUpHead& head, const at::Tensor& q, const at::Tensor& k) {
  const AttentionSpec spec = spec_of(head.variant, q.size(1), head.scale);
  Weights weights;
  weights.set(kBranch + ".mix", at::full({1}, std::log(head.share) - std::log1p(-head.share), q.options()));
  const at::Tensor q4 = one_head(q), k4 = one_head(k), none;
  const at::Tensor places = at::full({1, q.size(0)}, k.size(0), at::kLong),
                   key_places = at::arange(k.size(0), at::kLong).unsqueeze(0);
  return attention_variant(spec.variant)
      .prepare({spec, weights, kBranch, q4, k4, places, key_places, none})
      ->pattern(0, 1, 0, q.size(0))
      .select(0, 0)
      .select(0, 0);
}

at::Tensor pattern_of_scores(const MadeUpHead& head, const at::Tensor& scores) {
  return made_up_pattern(head, scores, at::eye(scores.size(1), scores.options()));
}

at::Tensor delta_pattern(const at::Tensor& q, const at::Tensor& k, double keep) {
  const int64_t n = q.size(0), m = k.size(0);
  AttentionSpec spec = spec_of("delta", q.size(1), 1.0);
  spec.causal = true;
  // Keys write with all their weight; queries behind them write nothing and forget nothing.
  const auto behind = [&](double first, double then) {
    return at::cat({at::full({m}, first, q.options()), at::full({n}, then, q.options())});
  };
  const at::Tensor gates = one_head(at::stack({behind(1, 0), behind(keep, 1)}, 1));
  const at::Tensor both = one_head(at::cat({k, q})), none;
  const at::Tensor places = at::arange(m + n, at::kLong).unsqueeze(0);
  return attention_variant("delta")
      .prepare({spec, {}, kBranch, both, both, places, places, none, &gates})
      ->pattern(0, 1, m, n)
      .select(0, 0)
      .select(0, 0)
      .narrow(1, 0, m);
}

double entropy_rank(const at::Tensor& matrix) {
  const at::Tensor s = at::linalg_svdvals(matrix), p = s / s.sum();
  return std::exp(-(p * at::log(p.clamp_min(1e-300))).sum().item<double>());
}

double rank_above(const at::Tensor& matrix, double tolerance) {
  const at::Tensor s = at::linalg_svdvals(matrix);
  return static_cast<double>((s > tolerance * s[0]).sum().item<int64_t>());
}

at::Tensor normal_matrix(uint64_t seed, uint32_t stream, int64_t rows, int64_t columns) {
  const Philox random{seed, stream, 0};
  std::vector<double> numbers(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = random.normal(i);
  return at::tensor(numbers, at::kDouble).view({rows, columns});
}

}  // namespace rankscope
