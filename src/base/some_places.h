// Which tokens or queries of a long sample are read, and which samples of a long text: one of each of so many
// equal parts, at a place in it that looks drawn. Evenly spaced ones of what repeats itself every few places
// (a table, a list) could all be the same word, and so, at some lengths, could places that turn by the same
// angle from part to part.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope {

/// At most `most` of the places 0 .. n-1, ascending; the first is 0. All of them where they are no more.
inline std::vector<int64_t> some_places(int64_t n, int64_t most) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // (sqrt(5) - 1) / 2 of 2^64
  const int64_t parts = n < most ? n : most;
  std::vector<int64_t> out;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t start = i * n / parts, width = (i + 1) * n / parts - start;
    const uint64_t turn = (static_cast<uint64_t>(i * i) * kGolden) >> 32;  // fraction of i^2 turns, of 2^32
    out.push_back(start + static_cast<int64_t>((turn * static_cast<uint64_t>(width)) >> 32));
  }
  return out;
}

}  // namespace rankscope
