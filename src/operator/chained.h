// Attention matrices multiplied along a path, as the forward pass would: P_k ... P_1. A product of stochastic
// matrices draws near to rank one, here by a constant factor a layer, since the patterns are those of the
// whole network and do not follow the shrinking residual.
#pragma once

#include <vector>

#include "base/tensor_fwd.h"
#include "operator/chain.h"
#include "operator/rerun.h"

namespace rankscope {

/// The held patterns of one sample of a frozen chain, layer by layer, each [H, T, T].
std::vector<at::Tensor> patterns_of(const AffineChain& chain, int64_t sample);

/// The product along a path, in float64, [T, T]; `ascending` multiplies P_1 ... P_k, as the published code
/// does.
at::Tensor chained_attention(const std::vector<at::Tensor>& patterns, const Path& path,
                             bool ascending = false);

/// ||P - s u v^T|| / ||P|| in the composite norm sqrt(||.||_1 ||.||_inf), with s u v^T the first term of the
/// SVD of P [T, T], which has no negative entries. Where the first two singular values are equal, one of the
/// possible terms.
double distance_from_rank_one(const at::Tensor& P);

}  // namespace rankscope
