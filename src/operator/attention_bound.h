// What the cubic bound (theory/collapse_bound.h) is made of, at one layer and one input.
#pragma once

#include "operator/split.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// E_h = scale R W_QK,h R^T with R the residual at the mean, D_ii = max_{j,j'} |E_ij - E_ij'|.
struct AttentionBound {
  double log_residual;  // log ||R||_{1,inf}
  double score;         // max |E|, over heads
  double spread;        // max D_ii, over heads: to be held against kSpreadLimit
  double gamma;         // sqrt(max_h sum_i D_ii / 2 ||E||_1 max_h max_i D_ii / 2 ||E||_1)
  double beta;          // with separate maxima
  double c;             // cubic_constant of this layer
};

AttentionBound attention_bound(const SplitTokens& tokens, const AttentionSpec& spec, const Weights& weights);

/// Whether the theorem speaks of the block's attention: softmax over all tokens, without positions inside the
/// scores, and nothing between the heads and their output map.
bool bound_applies(const BlockSpec& block);

}  // namespace rankscope
