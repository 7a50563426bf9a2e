// What a network without some of its heads no longer needs.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "spec/model.h"
#include "spec/parameter.h"

namespace rankscope {

using HeadSet = std::set<std::pair<int64_t, int64_t>>;  // layer, head

/// Numbers of a parameter of this attention that the heads which are on need. One that lies head by head goes
/// with its head, one of a KV head with the last head that reads it; what belongs to no head stays.
int64_t needed_of(const Parameter& parameter, const AttentionSpec& attention);

/// The same of all its parameters that lie head by head: queries, keys, values and outputs, and whatever else
/// the part has of them (gates, convolutions, rates of forgetting, sinks).
int64_t needed_by_heads(const BranchSpec& branch, int64_t width);

/// Numbers that a cache keeps of every token: keys and values that a head reads, or the latent that all are
/// made of. A layer that keeps a state keeps none.
int64_t cached_of_a_token(const BranchSpec& branch, int64_t width);

/// Parameters that go with the heads. Blocks that share their weights save those of a head once, where it is
/// out of all of them.
int64_t parameters_saved(const ModelSpec& spec, const HeadSet& out);

/// The share of the cache of keys and values that goes with them.
double cache_saved(const ModelSpec& spec, const HeadSet& out);

}  // namespace rankscope
