// Attention alone, forward and backward, for one width of a head.
#pragma once

#include "bench/bench.h"
#include "bench/machine.h"

namespace rankscope {

struct AttentionShape {
  int64_t width = 8;  // of a head
  bool backward = false;
};

std::string name_of(const AttentionShape& shape);
BenchRow measure_attention(Machine& machine, const AttentionShape& shape);

}  // namespace rankscope
