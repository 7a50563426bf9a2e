// A network at random initialisation, drawn part by part when asked for: nothing is stored.
#pragma once

#include "model/weights.h"

namespace rankscope {

/// Matrices from N(0, spec.init_std^2), biases zero, gains one; every number a function of (seed, name,
/// index). dtype is "float32" or "float64".
std::unique_ptr<WeightSource> random_source(const ModelSpec& spec, uint64_t seed, const std::string& dtype,
                                            const std::string& device);

}  // namespace rankscope
