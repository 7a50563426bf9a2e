// What a rule needs to count many heads without counting chance.
#pragma once

#include <span>
#include <vector>

namespace rankscope::verdict {

/// Benjamini and Hochberg (1995): which of the hypotheses with these p-values are rejected, so that on
/// average no more than `level` of the rejected ones are true.
std::vector<bool> benjamini_hochberg(std::span<const double> p, double level);

}  // namespace rankscope::verdict
