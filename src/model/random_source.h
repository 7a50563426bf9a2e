// A network at random initialisation, drawn part by part when asked for: nothing is stored.
#pragma once

#include "tensors/weights.h"

namespace rankscope {

/// As spec.init says; every number a function of (seed, name, index). dtype is "float32" or "float64".
std::unique_ptr<WeightSource> random_source(const ModelSpec& spec, uint64_t seed, const std::string& dtype,
                                            const std::string& device);

}  // namespace rankscope
