// Norms and activations on tensors.
#pragma once

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

/// What the norm multiplies every token of x [N, d] with before the gains, [N, 1]: 1 / sigma, 1 / rms, 1 /
/// ||x||.
at::Tensor norm_scale(const at::Tensor& x, const NormSpec& norm);

/// The softmax of scores [N, E] over the `active` largest of a row, zero for the rest, each repeated until the
/// row has `width` numbers.
at::Tensor shares_of(const at::Tensor& scores, int64_t active, int64_t width);

/// `in_place`: x itself is used up where the function allows it.
at::Tensor apply_activation(at::Tensor x, Activation activation, bool in_place = true);

}  // namespace rankscope
