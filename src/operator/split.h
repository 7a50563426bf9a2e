// The pass in split arithmetic: the tokens of a sample kept as X = 1 x^T + e^s R, the common part and the
// residual apart, the residual with a scale of its own. Nothing is ever computed as the difference of two
// nearly equal numbers, so a residual is followed far below rounding, and in logarithms below the smallest
// double.
//
// Attention of x + e^s R_i to x + e^s R_j scores, up to terms constant along a row, e^s r_j + e^2s E_ij. With
// q = softmax(e^s r), u = expm1(e^2s E) and e_i = sum_j q_j u_ij, a pattern's rows differ from q by
//   P_ij - q_j = q_j (u_ij - e_i) / (1 + e_i),
// of order e^2s, and what they write by e^3s: the cubic law. Patterns that depend on positions or a mask
// differ at order one and are applied as they are. Norms and activations split the same way, through expm1
// and log1p, and through the mean slope between the two points.
#pragma once

#include <memory>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// Natural logarithms; -inf where the residual is zero. The residual is taken at the mean token.
struct SplitResidual {
  double log_l1inf, log_l1inf_rel;  // composite norm sqrt(||.||_1 ||.||_inf), and divided by that of X
  double log_fro, log_fro_rel;
};

class SplitTokens {
 public:
  explicit SplitTokens(const at::Tensor& X);  // [T, d], float64, one sample
  SplitTokens(SplitTokens&&) noexcept;
  SplitTokens& operator=(SplitTokens&&) noexcept;
  ~SplitTokens();

  /// One block over a batch of this one sample; weights in float64.
  void advance(const BlockSpec& block, const Weights& weights, const Batch& batch);
  void norm(const NormSpec& norm, const Weights& weights, std::string_view name);

  SplitResidual residual() const;
  at::Tensor whole() const;   // x + e^s R, [T, d]
  at::Tensor common() const;  // x, [d]
  at::Tensor unit() const;    // R, [T, d], largest entry 1
  double log_scale() const;   // s

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope
