// Softmax over the rows of a 16 x 16 square that a warp holds as two fragments (tiles.cuh).
#pragma once

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/tiles.cuh"

namespace rankscope::cuda {

/// Calls use(n, i) for this lane's eight places: fragment n, row g + 8 (i / 2), column 8n + 2t + i % 2.
template <class Use>
__device__ __forceinline__ void for_each_place(Use use) {
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) use(n, i);
}

/// Over the columns of row g + 8r: four numbers here, and those of three neighbours.
__device__ __forceinline__ float across_keys_max(const Square& s, int r) {
  float x = fmaxf(fmaxf(s.x[0][2 * r], s.x[0][2 * r + 1]), fmaxf(s.x[1][2 * r], s.x[1][2 * r + 1]));
  x = fmaxf(x, __shfl_xor_sync(kEveryLane, x, 1));
  return fmaxf(x, __shfl_xor_sync(kEveryLane, x, 2));
}
__device__ __forceinline__ float across_keys_sum(const Square& s, int r) {
  float x = (s.x[0][2 * r] + s.x[0][2 * r + 1]) + (s.x[1][2 * r] + s.x[1][2 * r + 1]);
  x += __shfl_xor_sync(kEveryLane, x, 1);
  return x + __shfl_xor_sync(kEveryLane, x, 2);
}

struct RowStatistics {
  float peak[2], share[2];  // of rows g and g + 8: the largest scaled score, 1 / sum of powers
};

/// Scores to weights, in place. `scale` holds the factor log2(e).
__device__ __forceinline__ RowStatistics softmax(Square& s, float scale) {
  for_each_place([&](int n, int i) { s.x[n][i] *= scale; });
  RowStatistics rows;
#pragma unroll
  for (int r = 0; r < 2; ++r) rows.peak[r] = across_keys_max(s, r);
  for_each_place([&](int n, int i) { s.x[n][i] = exp2_fast(s.x[n][i] - rows.peak[i / 2]); });
#pragma unroll
  for (int r = 0; r < 2; ++r) rows.share[r] = 1.0f / across_keys_sum(s, r);
  for_each_place([&](int n, int i) { s.x[n][i] *= rows.share[i / 2]; });
  return rows;
}

}  // namespace rankscope::cuda
