// How many heads a bound asks for.
#pragma once

#include <cmath>

namespace rankscope {

/// log10 of the fewest heads for which `at_log`, a bound that falls as log(heads) grows, comes down to
/// `error`.
template <class Bound>
double log10_fewest_heads(const Bound& at_log, double error) {
  if (at_log(0.0) <= error) return 0;
  double low = 0, high = 1;
  while (at_log(high) > error) high *= 2;
  for (int i = 0; i < 100 && high - low > 1e-13 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (at_log(middle) > error ? low : high) = middle;
  }
  return high / std::log(10.0);
}

}  // namespace rankscope
