// The slopes of ALiBi (Press et al. 2022): a geometric series over the heads, and between its members where
// the number of heads is no power of two.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace rankscope {

inline std::vector<double> alibi_slopes(int64_t heads) {
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<double> out;
  const auto series = [&](int64_t members, int64_t step, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      out.push_back(std::exp2(-8.0 / static_cast<double>(members) * static_cast<double>(1 + step * i)));
  };
  series(whole, 1, whole);
  series(2 * whole, 2, heads - whole);
  return out;
}

}  // namespace rankscope
