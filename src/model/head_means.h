// What a head carries when it carries nothing of the tokens: for taking heads out without taking their mean
// out.
#pragma once

#include <vector>

#include "base/tensor_fwd.h"
#include "model/batch.h"
#include "tensors/weights.h"

namespace rankscope {

/// By head, d_v numbers each: the mean of what it carries over all tokens of all samples, and what its biases
/// alone make it carry (b_V and what W_V makes of the norm's bias; nothing where rows of a pattern do not sum
/// to one).
struct HeadMeans {
  std::vector<std::vector<double>> mean, bare;
  /// By head and sample: what it could write. sqrt(n median |W_O (v - mean v)|^2) over the values v of the
  /// sample's n tokens, as a share of what the stream before the block varies. The median, so that one token
  /// does not speak for all.
  std::vector<std::vector<double>> able = {};
};

/// One a layer, by one forward pass; none where something stands between the heads and their output map.
std::vector<HeadMeans> head_means(WeightSource& source, const std::vector<Batch>& batches);

/// What biases alone make each head carry, [H, d_v], on the host; and W_O^T W_O of every head, [H, d_v, d_v].
at::Tensor carried_by_biases(const BranchSpec& branch, const Weights& weights);
at::Tensor output_grams(const Weights& weights, const AttentionSpec& attention);

/// The spec with that head carrying these numbers whatever the tokens.
ModelSpec with_fixed_head(ModelSpec spec, int64_t layer, int64_t head, const std::vector<double>& values);

}  // namespace rankscope
