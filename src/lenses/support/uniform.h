// Uniform attention under a mask: what the numbers of a pattern are laid beside. Never formed: it is sums
// over ranges, O(T) to apply.
#pragma once

#include <vector>

#include "lenses/support/mask.h"
#include "spectral/norm.h"

namespace rankscope {

/// (I - J) U for U the uniform attention under the mask.
LinearMap centered_uniform(const Mask& mask);

/// Its largest singular value; computed once per mask and kept for the life of the process.
double mixing_of_uniform(const Mask& mask);

/// received[j]: mean attention key j gets under U from the queries that may see it.
std::vector<double> received_from_uniform(const Mask& mask);

}  // namespace rankscope
