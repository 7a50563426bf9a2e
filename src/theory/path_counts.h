// How many paths a Transformer of L layers with H heads and skips has: C(L, k) H^k of length k, (1 + H)^L in
// all. The shares are those of Binomial(L, H / (H + 1)). Counting says nothing about what the paths carry.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rankscope {

struct PathCounts {
  std::vector<double> log10_count;  // by length, 0 .. L
  std::vector<double> share;
  double log10_total = 0, mean = 0, deviation = 0;
  int64_t mode = 0;  // the longer one where two lengths are equally many
};

PathCounts path_counts(int64_t layers, int64_t heads);

/// What a path may do in one layer: take one of its heads, or the skip past them where there is one.
struct LayerPaths {
  int64_t heads = 0;
  bool skip = true;
};

/// The same for layers that differ: as many paths of length k as there are choices of k layers in which a
/// head is taken, and of the head. The shares are those of a sum of coins that fall with H_l / (H_l + 1), or
/// surely where there is no skip. Where a layer lets no path through there are none.
PathCounts path_counts(std::span<const LayerPaths> layers);

/// Natural logarithms, by length, of the published model of what paths weigh: e_k H^k R0 c^-(3^k - 1), where
/// e_k sums, over all choices of k layers, (1 - alpha) of those taken times alpha of the others: alpha_l is
/// what layer l passes on. Equal alphas make C(L, k) alpha^(L-k) (1 - alpha)^k of e_k.
std::vector<double> log_path_weights(std::span<const double> alpha, int64_t heads, double r0, double c);

/// C(L, k) H^k, or `most` where it is more.
int64_t path_count(int64_t layers, int64_t heads, int64_t length, int64_t most);

}  // namespace rankscope
