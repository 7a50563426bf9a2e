// What a network without some of its heads no longer needs. Knows nothing of torch.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "spec/model.h"

namespace rankscope {

using HeadSet = std::set<std::pair<int64_t, int64_t>>;  // layer, head

/// Parameters of Q, K, V and O that go with the heads; keys and values only with the last head that reads
/// them.
int64_t parameters_saved(const ModelSpec& spec, const HeadSet& out);

/// The share of the cache of keys and values that goes with them.
double cache_saved(const ModelSpec& spec, const HeadSet& out);

}  // namespace rankscope
