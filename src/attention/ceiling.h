// The largest rank that a head's matrix can have, by the law of its kind.
#pragma once

#include <cstdint>
#include <optional>

#include "spec/model.h"

namespace rankscope {

/// Of head `head` on n x n = `tokens` x `tokens`; none where its kind has no law. In a layer of mixed heads
/// every head has one: those without a law have n.
std::optional<int64_t> rank_ceiling(const AttentionSpec& spec, int64_t head, int64_t tokens);

}  // namespace rankscope
