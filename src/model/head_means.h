// What a head carries when it carries nothing of the tokens: for taking heads out without taking their mean
// out.
#pragma once

#include <vector>

#include "model/batch.h"
#include "tensors/weights.h"

namespace rankscope {

/// By head, d_v numbers each: the mean of what it carries over all tokens of all samples, and what its biases
/// alone make it carry (b_V and what W_V makes of the norm's bias; nothing where rows of a pattern do not sum
/// to one).
struct HeadMeans {
  std::vector<std::vector<double>> mean, bare;
};

/// One a layer, by one forward pass; none where something stands between the heads and their output map.
std::vector<HeadMeans> head_means(WeightSource& source, const std::vector<Batch>& batches);

/// The spec with that head carrying these numbers whatever the tokens.
ModelSpec with_fixed_head(ModelSpec spec, int64_t layer, int64_t head, const std::vector<double>& values);

}  // namespace rankscope
