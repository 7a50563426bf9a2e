// How the nearest of N independent points of the sphere depends on the query, degree by degree: W_l as in
// choice_energies.h, for points that are not orthonormal (docs/BOUND.md derives what is integrated here).
#pragma once

#include <cstdint>

#include "theory/choice_energies.h"

namespace rankscope {

/// d >= 3 and n >= 2. No sampling: a threefold integral by Gauss's rule, twice. Its error comes from the
/// distance between the two and from what rounding may have done; degrees from the first whose error passes
/// 1e-5 are left out, but for 0 and 1.
ChoiceEnergies independent_energies(int64_t d, int64_t n);

}  // namespace rankscope
