// Sums over all paths of a frozen network, exactly. A path goes, at every step with a skip, either along the
// skip or through the branch; the sum over all paths with k attentions is the coefficient of t^k of
// prod_l (I + t A_l), and all of them together cost L (L + 1) / 2 attention applications.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/tensor_fwd.h"
#include "operator/chain.h"

namespace rankscope {

/// What is counted beside attention. What is not counted is part of every path: an MLP is then taken together
/// with its skip.
struct Grading {
  bool mlp = false;   // z + s M z where the MLP has its skip, s M z where it has none
  bool norm = false;  // N = I + r (N - I): a norm as what it does beyond passing on
};

/// [attentions + 1, mlps + 1, norms + 1, N, d] for x [N, d] at the start: entry (a, m, n) is the sum over all
/// paths with that many of each; an axis that is not graded has size 1. Their sum and the bias of the chain
/// are the output.
at::Tensor path_sums(const AffineChain& chain, const at::Tensor& x, const Grading& grading = {});

/// [layers, lengths, N, d]: the sum over all paths of each length that go through the attention of each
/// layer. Over the layers this sums to k times the sum over all paths of length k.
at::Tensor layer_marginals(const AffineChain& chain, const at::Tensor& x);

/// [heads, N, d]: the sum over all paths, of any length, that go through one head; and which head, (layer,
/// head), in the same order.
at::Tensor head_marginals(const AffineChain& chain, const at::Tensor& x,
                          std::vector<std::pair<int, int>>& which);

/// [lengths]: the sum, over all paths of each length, of the Frobenius norms of what they write. Every path
/// is followed on its own, (1 + heads)^layers of them, where the sums above need no path at all.
std::vector<double> sums_of_path_norms(const AffineChain& chain, const at::Tensor& x);

}  // namespace rankscope
