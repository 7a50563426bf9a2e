// A product of small matrices that lie in the first-level cache. Each element of c is one chain of fused
// multiply-adds in the order of k, whatever the tile it is computed in.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace rankscope::simd::RANKSCOPE_SIMD {

/// a(row, k) = a.data[row * a.row + k * a.column]: a transposed matrix only swaps the two.
template <class T>
struct Factor {
  const T* data;
  int64_t row, column;
};

/// c[R, V * W] += a b, in registers.
template <int R, int V, int W, class T>
RANKSCOPE_INLINE void tile(Factor<T> a, const T* b, int64_t ldb, int64_t depth, T* c, int64_t ldc, bool add) {
  Vec<T, W> sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) sum[r][v] = add ? load<T, W>(c + r * ldc + v * W) : Vec<T, W>{};
  for (int64_t k = 0; k < depth; ++k, b += ldb, a.data += a.column) {
    Vec<T, W> line[V];
    for (int v = 0; v < V; ++v) line[v] = load<T, W>(b + v * W);
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) sum[r][v] += a.data[r * a.row] * line[v];
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) store_vec<T, W>(c + r * ldc + v * W, sum[r][v]);
}

template <int R, int V, int W, class T>
void strip(int64_t rows, Factor<T> a, const T* b, int64_t ldb, int64_t depth, T* c, int64_t ldc, bool add) {
  for (; rows >= R; rows -= R, a.data += R * a.row, c += R * ldc)
    tile<R, V, W>(a, b, ldb, depth, c, ldc, add);
  if constexpr (R > 1)
    if (rows > 0) strip<R / 2, V, W>(rows, a, b, ldb, depth, c, ldc, add);
}

/// c [rows, columns] = a b, or += with `add`.
template <int W, class T>
void gemm_by(int64_t rows, int64_t columns, int64_t depth, Factor<T> a, const T* b, int64_t ldb, T* c,
             int64_t ldc, bool add) {
  if constexpr (W == lanes<T>)
    for (; columns >= 2 * W; columns -= 2 * W, b += 2 * W, c += 2 * W)
      strip<4, 2, W>(rows, a, b, ldb, depth, c, ldc, add);
  for (; columns >= W; columns -= W, b += W, c += W) strip<8, 1, W>(rows, a, b, ldb, depth, c, ldc, add);
  if constexpr (W > 1)
    if (columns > 0) gemm_by<(W > 4 ? W / 2 : 1)>(rows, columns, depth, a, b, ldb, c, ldc, add);
}

template <class T>
void gemm(int64_t rows, int64_t columns, int64_t depth, Factor<T> a, const T* b, int64_t ldb, T* c,
          int64_t ldc, bool add = false) {
  gemm_by<lanes<T>>(rows, columns, depth, a, b, ldb, c, ldc, add);
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
