// Norms on tensors.
#pragma once

#include <string>
#include <string_view>

#include "base/tensor_fwd.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// layer: g (x - mean) / sqrt(var + eps) + b.  rms: g x / sqrt(mean x^2 + eps).  unit: g x / ||x||, g one
/// number.  none: x. The gains are `weights` under `name`.w and `name`.b (or w and b when the name is empty).
/// Where there is a `name`.held, it stands for the tokens' own statistics.
at::Tensor apply_norm(const at::Tensor& x, const NormSpec& norm, const Weights& weights,
                      std::string_view name);

/// The same over each of `groups` equal parts of a token: gains as long as a part, or as the token.
at::Tensor apply_grouped_norm(const at::Tensor& x, const NormSpec& norm, int64_t groups,
                              const Weights& weights, const std::string& name);

/// The gain and bias that the norm has learned, undefined where it has none; `stem` is "ln1." or empty.
at::Tensor gain_of_norm(const NormSpec& norm, const Weights& weights, const std::string& stem);
at::Tensor bias_of_norm(const NormSpec& norm, const Weights& weights, const std::string& stem);

/// What the norm multiplies every token of x [N, d] with before the gains, [N, 1]: 1 / sigma, 1 / rms or
/// 1 / ||x||.
at::Tensor norm_scale(const at::Tensor& x, const NormSpec& norm);

}  // namespace rankscope
