// The inverse of 1 + M, for M below the diagonal of a tile: blocks of 16 by substitution, then two and two
// of them together by products,
//   (A 0; B C)^-1 = (A^-1 0; -C^-1 B A^-1  C^-1).
#pragma once

#include "kernels/cuda/running_tiles.cuh"

namespace rankscope::cuda {

/// 16 x 8 numbers at (row, column) of a product of tiles over `depth` terms from `first` on.
__device__ __forceinline__ Sum block_product(const float* a, const float* b, int row, int column, int first,
                                             int depth) {
  const WarpPlace w;
  Sum sum;
  for (int k = first; k < first + depth; k += 8) {
    const Split x[4] = {split(a[place(row + w.g, k + w.t)]), split(a[place(row + w.g + 8, k + w.t)]),
                        split(a[place(row + w.g, k + w.t + 4)]), split(a[place(row + w.g + 8, k + w.t + 4)])};
    sum.add(x, split(b[place(k + w.t, column + w.g)]), split(b[place(k + w.t + 4, column + w.g)]));
  }
  return sum;
}

/// inverse = (1 + M)^-1; M is written over. The block calls it together, with M there; the inverse is there
/// behind it.
__device__ inline void invert_triangle(float* M, float* inverse) {
  const int thread = static_cast<int>(threadIdx.x);
  const WarpPlace w;
  for (int i = thread; i < kTile; i += kRunningThreads) inverse[i] = 0;
  __syncthreads();
  if (thread < kC) {  // a column of a block each, from the diagonal down
    const int first = thread / 16 * 16, column = thread % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
      for (int l = 0; l < i; ++l) x[i] -= M[place(first + i, first + l)] * x[l];
      inverse[place(first + i, thread)] = x[i];
    }
  }
  __syncthreads();
  for (int size = 16; size < kC; size *= 2) {
    // One piece of 16 x 8 a warp: 4 pieces of two pairs of 16, 8 of one pair of 32.
    const int warp = thread / 32, wide = size / 8, each = size / 16 * wide, pair = warp / each;
    const bool busy = pair < kC / 2 / size;
    const int low = pair * 2 * size, row = low + size + warp % each / wide * 16,
              column = low + warp % wide * 8;
    const auto put = [&](float* to, const Sum& sum, float sign) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        to[place(row + w.g + 8 * (i >> 1), column + 2 * w.t + (i & 1))] = sign * sum[i];
    };
    Sum sum;
    if (busy) sum = block_product(M, inverse, row, column, low, size);
    __syncthreads();
    if (busy) put(M, sum, 1);
    __syncthreads();
    if (busy) put(inverse, block_product(inverse, M, row, column, low + size, size), -1);
    __syncthreads();
  }
}

}  // namespace rankscope::cuda
