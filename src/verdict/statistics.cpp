#include "verdict/statistics.h"

#include <algorithm>
#include <numeric>

namespace rankscope::verdict {

std::vector<bool> benjamini_hochberg(std::span<const double> p, double level) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  size_t rejected = 0;
  for (size_t i = 0; i < order.size(); ++i)
    if (p[order[i]] <= level * static_cast<double>(i + 1) / static_cast<double>(p.size())) rejected = i + 1;
  std::vector<bool> out(p.size(), false);
  for (size_t i = 0; i < rejected; ++i) out[order[i]] = true;
  return out;
}

}  // namespace rankscope::verdict
