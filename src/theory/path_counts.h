// How many paths a Transformer of L layers with H heads and skips has: C(L, k) H^k of length k, (1 + H)^L in
// all. The shares are those of Binomial(L, H / (H + 1)). Counting says nothing about what the paths carry.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope {

struct PathCounts {
  std::vector<double> log10_count;  // by length, 0 .. L
  std::vector<double> share;
  double log10_total = 0, mean = 0, deviation = 0;
  int64_t mode = 0;  // the longer one where two lengths are equally many
};

PathCounts path_counts(int64_t layers, int64_t heads);

/// C(L, k) H^k, or `most` where it is more.
int64_t path_count(int64_t layers, int64_t heads, int64_t length, int64_t most);

}  // namespace rankscope
