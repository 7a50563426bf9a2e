// 16 rows of W columns held by one warp, in the two ways the products of attention need them. Which column
// stands at which place of a contraction is free as long as both factors agree, so the places are chosen for
// wide, whole-sector loads straight from global memory; no tile passes through shared memory.
#pragma once

#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/mma.cuh"

namespace rankscope::cuda {

/// This lane's place in a fragment.
struct Lane {
  int g, t;
  __device__ __forceinline__ Lane() : g((threadIdx.x & 31) >> 2), t(threadIdx.x & 3) {}
};

/// For products over columns (scores): rows g and g + 8, W / 4 columns of each. W is 16 or a multiple of 32.
template <int W>
struct RowTile {
  static constexpr int kRows = 2, kEach = W / 4, kVector = 4;
  alignas(16) float x[kRows][kEach];
  /// Where element (r, c) stands; kVector neighbouring elements are neighbouring columns.
  static __device__ __forceinline__ int row(int r, Lane lane) { return lane.g + 8 * r; }
  static __device__ __forceinline__ int column(int c, Lane lane) { return 4 * c + kVector * lane.t; }
};

/// 16 x 16 numbers as two C fragments: rows g and g + 8, columns 8n + 2t and 8n + 2t + 1.
struct Square {
  float x[2][4];
};

/// Adds rows a times rows b transposed: sum[n] is fragment n of the square.
template <int W>
__device__ __forceinline__ void add_row_products(const RowTile<W>& a, const RowTile<W>& b, Sum (&sum)[2]) {
  constexpr int kEach = RowTile<W>::kEach;
#pragma unroll
  for (int c = 0; c < kEach; c += 2) {
    Split sa[4], sb[4];  // (g, first), (g + 8, first), (g, second), (g + 8, second)
#pragma unroll
    for (int e = 0; e < 2; ++e)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        sa[2 * e + r] = split(a.x[r][c + e]);
        sb[2 * e + r] = split(b.x[r][c + e]);
      }
#pragma unroll
    for (int n = 0; n < 2; ++n) sum[n].add(sa, sb[n], sb[2 + n]);
  }
}

__device__ __forceinline__ Square total(const Sum (&sum)[2]) {
  Square out;
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) out.x[n][i] = sum[n][i];
  return out;
}

/// For products over rows (mixing): rows 2t, 2t + 1, 8 + 2t, 9 + 2t, W / 8 columns of each.
template <int W>
struct ColumnTile {
  static constexpr int kRows = 4, kEach = W / 8, kVector = kEach < 4 ? kEach : 4;
  alignas(16) float x[kRows][kEach];
  static __device__ __forceinline__ int row(int r, Lane lane) { return 2 * lane.t + (r & 1) + 8 * (r >> 1); }
  static __device__ __forceinline__ int column(int c, Lane lane) { return 8 * c + kVector * lane.g; }
};

template <class Tile>
__device__ __forceinline__ void load_rows(const float* from, int64_t stride, Lane lane, Tile& tile) {
#pragma unroll
  for (int r = 0; r < Tile::kRows; ++r)
#pragma unroll
    for (int c = 0; c < Tile::kEach; c += Tile::kVector)
      load_floats<Tile::kVector>(from + Tile::row(r, lane) * stride + Tile::column(c, lane), &tile.x[r][c]);
}

/// A square as the first factor of mixing: its C fragments are A fragments, with the keys in another order.
struct Weights {
  Split a[2][4];
  __device__ __forceinline__ explicit Weights(const Square& s) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      a[n][0] = split(s.x[n][0]);
      a[n][1] = split(s.x[n][2]);
      a[n][2] = split(s.x[n][1]);
      a[n][3] = split(s.x[n][3]);
    }
  }
};

/// Weights times rows: 16 x W numbers, rows g and g + 8, W / 4 columns of each.
template <int W>
struct Mixed {
  static constexpr int kEach = W / 8;
  static constexpr int kVector = ColumnTile<W>::kVector;
  alignas(16) float x[2][2 * kEach];

  __device__ __forceinline__ Mixed(const Weights& weights, const ColumnTile<W>& rows) {
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
      Sum sum;
#pragma unroll
      for (int n = 0; n < 2; ++n) sum.add(weights.a[n], split(rows.x[2 * n][c]), split(rows.x[2 * n + 1][c]));
      // Run c / kVector holds 8 * kVector columns; this lane has its runs 2t and 2t + 1 of kVector columns.
      const int at = c / kVector * 2 * kVector + c % kVector;
      x[0][at] = sum[0];
      x[0][at + kVector] = sum[1];
      x[1][at] = sum[2];
      x[1][at + kVector] = sum[3];
    }
  }

  /// The column of element c: this lane has runs of 2 kVector.
  static __device__ __forceinline__ int column(int c, Lane lane) {
    constexpr int kRun = 2 * kVector;
    return c / kRun * 8 * kVector + kRun * lane.t + c % kRun;
  }
  __device__ __forceinline__ void store(float* to, int64_t stride, Lane lane) const {
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int c = 0; c < 2 * kEach; c += 4)
        store_floats<4>(to + (lane.g + 8 * r) * stride + column(c, lane), &x[r][c]);
  }
};

}  // namespace rankscope::cuda
