// What parts with attention share: the maps in front of the pattern and the one behind it.
#pragma once

#include <functional>

#include "parts/program.h"

namespace rankscope {

/// Queries from what the part reads, keys and values from the stream it looks at, pattern times values.
/// `changed`, where given, may put something on a projection: it gets 'Q', 'K' or 'V' and its value.
Value attended(PartBuilder& builder, const std::function<Value(char, Value)>& changed = {}, Value gates = -1);

/// W_O: the heads' outputs into the stream, averaged over modules.
Value output_map(PartBuilder& builder, Value z);

}  // namespace rankscope
