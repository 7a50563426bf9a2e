// What the kernels of the MLP share. Both chain products in registers: the accumulator of one is the first
// factor of the next. A thread has columns 2t and 2t + 1 of an accumulator's eight but gives columns t and t
// + 4 of a factor, so the rows of what makes the accumulator are put into shared memory in another order:
// place 2t takes row t of eight, place 2t + 1 row t + 4, and the next product finds its contraction in order.
#pragma once

#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mlp.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/tiles.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace rankscope::cuda {

constexpr int kWidth = static_cast<int>(kMlpWidth);
constexpr int kGroup = 128;     // threads of a warpgroup
constexpr int kGroupRows = 64;  // of a first factor, or of an accumulator

// Which warpgroup this is; said so that the compiler knows it is the same for a whole warp, and keeps what
// depends on it in the registers that a warp shares, where the tensor cores want it.
__device__ __forceinline__ int group_index() {
  return __shfl_sync(kEveryLane, static_cast<int>(threadIdx.x) / kGroup, 0);
}

__device__ __forceinline__ int row_at(int place) { return place / 8 * 8 + place % 8 / 2 + place % 2 * 4; }

// Brings a matrix of kRows rows by kColumns columns to shared memory; row_of(i) says which row stands i-th. A
// pass of all threads takes whole groups of eight rows, so that every pass is the first one some way on.
template <int kThreads, int kRows, int kColumns, class RowOf>
__device__ __forceinline__ void fetch(float* to, const float* from, int64_t stride, RowOf row_of) {
  constexpr int kPieces = kColumns / 4, kPassRows = kThreads / kPieces;
  static_assert(kPassRows % 8 == 0 && kRows % kPassRows == 0);
  const int row = threadIdx.x / kPieces, column = threadIdx.x % kPieces * 4;
  to += swizzled(row, column, kRows);
  from += row_of(row) * stride + column;
#pragma unroll
  for (int pass = 0; pass < kRows / kPassRows; ++pass)
    copy_async(to + pass * kPassRows * kBlockColumns, from + pass * kPassRows * stride);
}

struct Ordered {
  __device__ __forceinline__ int operator()(int row) const { return row; }
};
struct Paired {
  __device__ __forceinline__ int operator()(int row) const { return row_at(row); }
};

/// The block's shared memory from its first multiple of 1024 bytes on: swizzled matrices start there.
__device__ __forceinline__ unsigned char* aligned_shared() {
  extern __shared__ unsigned char shared[];
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  return shared + (1024 - address % 1024) % 1024;
}

}  // namespace rankscope::cuda
