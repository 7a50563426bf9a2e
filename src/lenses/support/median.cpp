#include "lenses/support/median.h"

#include "base/stats.h"

namespace rankscope {

std::vector<uint8_t> above_median(std::span<const double> values) {
  std::vector<double> nonzero;
  for (const double v : values)
    if (v > 0) nonzero.push_back(v);
  const double limit = nonzero.empty() ? 0.0 : kMassive * median(nonzero);
  std::vector<uint8_t> above;
  for (const double v : values) above.push_back(v > limit);
  return above;
}

}  // namespace rankscope
