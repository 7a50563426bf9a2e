// Which input token an output token is made of: the operator contracted with the input, and with a direction
// of the output. The contributions of all input tokens and the bias are the output itself.
#pragma once

#include "operator/chain.h"

namespace rankscope {

/// One application an input token, several side by side. `directions` [N, w] names a direction for each
/// output token. Fills in [N out, N in] with ||T[i,:,j,:] x_j|| and in_out with u_i . T[i,:,j,:] x_j.
void token_map(const AffineChain& chain, const at::Tensor& x, const at::Tensor& directions, at::Tensor& in,
               at::Tensor& in_out);

}  // namespace rankscope
