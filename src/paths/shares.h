// How the output of the sample a report shows divides over paths of each length.
#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "model/batch.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// Adds path_norm and path_share of "full" for every length, and path_share_bias, as `rankscope paths` has
/// them under "only". A report must not make a scan much dearer than it was asked to be: where the paths
/// would cost more than `tokens` tokens through the network, and are not cheap either, a note says so
/// instead.
void add_path_shares(const ModelSpec& spec, WeightSource& source, const Batch& sample, int64_t tokens,
                     ResultTable& table, std::vector<std::string>& notes);

}  // namespace rankscope
