// How the time of a training step grows with one quantity while the others stay.
#pragma once

#include "bench/bench.h"
#include "bench/machine.h"

namespace rankscope {

/// "tokens", "width", "heads", "stack".
std::vector<std::string> growth_axes();
GrowthCurve measure_growth(const Machine& machine, const std::string& axis, const BenchProgress& progress);

}  // namespace rankscope
