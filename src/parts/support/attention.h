// What parts with attention share: the maps in front of the pattern and the one behind it.
#pragma once

#include "parts/program.h"

namespace rankscope {

/// Queries from what the part reads, keys and values from the stream it looks at, pattern times values.
Value attended(PartBuilder& builder);

/// W_O: the heads' outputs into the stream, averaged over modules.
Value output_map(PartBuilder& builder, Value z);

}  // namespace rankscope
