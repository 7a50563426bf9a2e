// The samples whose own tokens are nearly all alike where those of all samples together are not: spread is
// one ratio of all of them, which a few samples that lie far apart decide.
#pragma once

#include <cmath>
#include <cstddef>

#include "verdict/rule.h"

namespace rankscope::verdict {

/// One place, by its rows: the residual that a block leaves, that of the massive channels it leaves out, and
/// what its MLP's units read, or nullptr.
struct ReadPlace {
  const Row& residual;
  const Row *left_out, *read;
  int layer;
};

struct SomeSamples {
  size_t alike = 0, all = 0;
  double most = 0, least_other = INFINITY;  // residuals: the largest of those alike, the least of the others
};

/// Alike is a sample whose residual, left-out channels and units are below their thresholds.
SomeSamples alike_in_some(const Case& c, const ReadPlace& place);

}  // namespace rankscope::verdict
