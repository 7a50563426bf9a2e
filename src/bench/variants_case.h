// Attention that is not softmax beside softmax, as sequences get longer.
#pragma once

#include "bench/bench.h"
#include "bench/machine.h"

namespace rankscope {

VariantCurve measure_variant(Machine& machine, const std::string& form, bool backward,
                             const BenchProgress& progress);
/// The limits and shares of the rate, at the best rates that the run has seen.
void set_limits(const Machine& machine, VariantCurve& curve);

/// "linear", "decay", "delta", "fastmax p=2".
std::vector<std::string> variant_form_names();

}  // namespace rankscope
