// What a gated delta rule writes into its state and keeps of it, head by head.
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// For scores `write` and `keep` [N, H] and `rate` and `bias` [H]: in each head sigmoid(write) and
/// exp(-exp(rate) softplus(keep + bias)), side by side: [N, H * 2]. Both lie between 0 and 1 whatever the
/// scores are.
at::Tensor delta_gates(const at::Tensor& write, const at::Tensor& keep, const at::Tensor& rate,
                       const at::Tensor& bias);

}  // namespace rankscope
