// 64 x 64 numbers in shared memory, and products of such tiles on the tensor cores. A tile whose numbers are
// factors of products holds them as the tensor cores take them (as_factor).
#pragma once

#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/running_attention.h"

namespace rankscope::cuda {

constexpr int kC = static_cast<int>(kRunningChunk);
constexpr int kTile = kC * kC;        // floats
constexpr int kRunningThreads = 256;  // 8 warps: 4 times 16 rows, 2 times 32 columns

extern __shared__ __align__(16) float running_shared[];

/// Where a number of a tile stands. The banks are mixed so that fragments are read without conflicts along
/// rows and along columns; four neighbours of a row, from a multiple of four on, stay neighbours.
__device__ __forceinline__ int place(int row, int column) {
  return row * kC + (column ^ ((row & 3) << 3 | (row & 4)));
}

__device__ __forceinline__ int up_to_eight(int64_t x) {
  return x >= kC ? kC : static_cast<int>((x + 7) / 8) * 8;
}

/// A matrix in global memory: zero outside.
struct PlainRows {
  const float* data;
  int64_t rows, columns;
  bool wide;  // every row starts at 16 bytes

  __device__ PlainRows(const float* from, int64_t row_count, int64_t column_count, bool known_wide = false)
      : data(from),
        rows(row_count),
        columns(column_count),
        wide(known_wide || (column_count % 4 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0)) {}
  __device__ __forceinline__ float operator()(int64_t row, int64_t column) const {
    return row < rows && column < columns ? data[row * columns + column] : 0.0f;
  }
};

/// One that is written.
struct OutRows {
  float* data;
  int64_t rows, columns;
  bool pairs;  // two and two neighbours of a row stand at 8 bytes

  __device__ OutRows(float* to, int64_t row_count, int64_t column_count, bool known_pairs = false)
      : data(to),
        rows(row_count),
        columns(column_count),
        pairs(known_pairs || (column_count % 2 == 0 && reinterpret_cast<uintptr_t>(to) % 8 == 0)) {}
};

/// A factor as the tensor cores take it: float32 where products are exact, otherwise rounded to TF32.
template <bool kExact>
__device__ __forceinline__ float as_factor(float x) {
  return kExact ? x : tf32_round(x);
}

/// This thread's `use(place, row, column)` for every four numbers of a tile's first columns (a multiple of
/// eight), or for every number.
template <class Use>
__device__ __forceinline__ void each_four(int columns, Use use) {
  const int thread = static_cast<int>(threadIdx.x), column = thread % (kC / 4) * 4;
  if (column >= columns) return;
#pragma unroll
  for (int i = 0; i < kTile / 4 / kRunningThreads; ++i) {
    const int row = thread / (kC / 4) + i * (4 * kRunningThreads / kC);
    use(place(row, column), row, column);
  }
}
template <class Use>
__device__ __forceinline__ void each_one(int columns, Use use) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int column = thread % 8; column < columns; column += 8)
#pragma unroll
    for (int row = thread / 8; row < kC; row += kRunningThreads / 8) use(place(row, column), row, column);
}

/// Starts to bring a tile: 64 rows, and columns up to a multiple of eight behind the last.
__device__ __forceinline__ void bring(float* tile, const PlainRows& m, int row0, int column0) {
  const int columns = up_to_eight(m.columns - column0);
  const float* first = m.data + row0 * m.columns + column0;
  const int stride = static_cast<int>(m.columns), rows_left = static_cast<int>(m.rows) - row0,
            columns_left = stride - column0;
  if (m.wide)
    each_four(columns, [&](int at, int row, int column) {
      const bool there = row < rows_left && column < columns_left;
      copy_async(tile + at, there ? first + (row * stride + column) : m.data, there ? 16 : 0);
    });
  else
    each_one(columns, [&](int at, int row, int column) {
      const bool there = row < rows_left && column < columns_left;
      copy_async_one(tile + at, there ? first + (row * stride + column) : m.data, there);
    });
}

/// Rounds what this thread has brought, once it has arrived.
template <bool kExact>
__device__ __forceinline__ void round_brought(float* tile, const PlainRows& m, int column0) {
  if (kExact) return;
  const int columns = up_to_eight(m.columns - column0);
  if (m.wide)
    each_four(columns, [&](int at, int, int) {
      auto* four = reinterpret_cast<float4*>(tile + at);
      const float4 x = *four;
      *four = {tf32_round(x.x), tf32_round(x.y), tf32_round(x.z), tf32_round(x.w)};
    });
  else
    each_one(columns, [&](int at, int, int) { tile[at] = tf32_round(tile[at]); });
}

/// A place for a tile, which knows what it holds.
struct Slot {
  float* tile;
  const float* holds = nullptr;
  __device__ explicit Slot(int number) : tile(running_shared + number * kTile) {}
  /// What threads write there themselves is nobody's tile.
  __device__ float* own() {
    holds = nullptr;
    return tile;
  }
};

/// A tile that is wanted in a slot.
struct Wanted {
  Slot& slot;
  const PlainRows& m;
  int row0, column0;
  bool really = true;
  __device__ const float* first() const { return m.data + row0 * m.columns + column0; }
  __device__ bool missing() const { return really && slot.holds != first(); }
};

/// Starts to bring a tile; nobody reads what goes.
__device__ __forceinline__ void start(const Wanted& w) {
  if (!w.really) return;
  w.slot.holds = w.first();
  bring(w.slot.tile, w.m, w.row0, w.column0);
}

/// Starts to bring the first tiles of some slots as one group.
template <class... Tiles>
__device__ __forceinline__ void request(const Tiles&... wanted) {
  (start(wanted), ...);
  copy_commit();
}

/// The block calls it together with tiles that were requested: all groups but the last kLater are there.
template <bool kExact, int kLater, class... Tiles>
__device__ __forceinline__ void arrived(const Tiles&... wanted) {
  copy_wait<kLater>();
  ((wanted.really ? round_brought<kExact>(wanted.slot.tile, wanted.m, wanted.column0) : void()), ...);
  __syncthreads();
}

/// The block calls it together; behind it everything wanted is there.
template <bool kExact, class... Tiles>
__device__ __forceinline__ void fetch(const Tiles&... wanted) {
  if (!(wanted.missing() || ...)) return;
  __syncthreads();  // nobody reads any more what goes
  const bool brought[] = {wanted.missing()...};
  int i = 0;
  ((brought[i++] ? start(wanted) : void()), ...);
  copy_commit();
  copy_wait<0>();
  i = 0;
  ((brought[i++] ? round_brought<kExact>(wanted.slot.tile, wanted.m, wanted.column0) : void()), ...);
  __syncthreads();
}

/// Where a warp stands in a tile, and a lane in its fragments (mma.cuh).
struct WarpPlace {
  int row, column, g, t;
  __device__ __forceinline__ WarpPlace() {
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31;
    row = thread / 32 % 4 * 16, column = thread / 128 * 32, g = lane >> 2, t = lane & 3;
  }
};

/// A 64 x 64 tile of a product, spread over the block's threads.
template <bool kExact>
struct Product {
  float big[4][4] = {}, small[4][4] = {};

  /// Adds a b of two tiles of factors in shared memory, transposed where they are turned, over `depth` terms
  /// (a multiple of eight). Of the product only `rows` and `columns` are needed.
  template <bool kTurnA, bool kTurnB>
  __device__ void add(const float* a, const float* b, int depth, int rows = kC, int columns = kC) {
    const WarpPlace w;
    if (w.row >= rows || w.column >= columns) return;
    const int mixed = (w.g & 3) << 3, low = w.g & 4;  // of a row g in `place`
    // Along rows the terms k + t stand at (k ^ mixed) + t, lower or upper half first; along columns nothing
    // but the row depends on k.
    const float *a0, *a1, *b0, *b1;
    if constexpr (kTurnA) {
      a0 = a + place(w.t, w.row + w.g), a1 = a + place(w.t + 4, w.row + w.g);
    } else {
      a0 = a + (w.row + w.g) * kC + w.t + low, a1 = a0 + 4 - 2 * low;
    }
    if constexpr (kTurnB) {
      b0 = b + (w.column + w.g) * kC + w.t + low, b1 = b0 + 4 - 2 * low;
    } else {
      b0 = b + w.t * kC + w.column + w.g, b1 = b + (w.t + 4) * kC + w.column + (w.g ^ 4);
    }
    constexpr int kUnroll = kExact ? 2 : 4;  // more than that does not fit into the instruction cache
#pragma unroll kUnroll
    for (int k = 0; k < depth; k += 8) {
      const int along = k ^ mixed, down = k * kC;
      float x[4];
      if constexpr (kTurnA) {
        // Eight columns further on is eight places further on or back.
        const int eight = w.t & 1 ? -8 : 8;
        x[0] = a0[down], x[1] = a0[down + eight], x[2] = a1[down], x[3] = a1[down + eight];
      } else {
        x[0] = a0[along], x[1] = a0[along + 8 * kC], x[2] = a1[along], x[3] = a1[along + 8 * kC];
      }
      Split sx[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) sx[i] = factor(x[i]);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int at = kTurnB ? along + 8 * n * kC : down + ((n ^ w.t) << 3);
        const Split y0 = factor(b0[at]), y1 = factor(b1[at]);
        if constexpr (kExact) {
          mma_tf32(small[n], sx[0].small, sx[1].small, sx[2].small, sx[3].small, y0.big, y1.big);
          mma_tf32(small[n], sx[0].big, sx[1].big, sx[2].big, sx[3].big, y0.small, y1.small);
        }
        mma_tf32(big[n], sx[0].big, sx[1].big, sx[2].big, sx[3].big, y0.big, y1.big);
      }
    }
  }

  __device__ __forceinline__ void plus(const Product& other) {
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) big[n][i] += other.big[n][i], small[n][i] += other.small[n][i];
  }
  /// One number each: less to hold.
  __device__ __forceinline__ void settle() {
    each([](int, int, float&) {});
  }
  /// use(row, column, value) for this thread's 16 numbers; it may change the value.
  template <class Use>
  __device__ __forceinline__ void each(Use use) {
    const WarpPlace w;
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float value = big[n][i] + small[n][i];
        use(w.row + w.g + 8 * (i >> 1), w.column + 8 * n + 2 * w.t + (i & 1), value);
        big[n][i] = value, small[n][i] = 0;
      }
  }
  /// Multiplies every row by its weight.
  __device__ __forceinline__ void scale(const float* weight) {
    const WarpPlace w;
    const float two[2] = {weight[w.row + w.g], weight[w.row + w.g + 8]};
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) big[n][i] *= two[i >> 1], small[n][i] *= two[i >> 1];
  }
  /// Its part of a matrix from (row0, column0) on.
  __device__ __forceinline__ void store(const OutRows& to, int row0, int column0) const {
    each_pair(to, row0, column0, [&](float* at, int n, int i, bool both) {
      const float2 two{big[n][i] + small[n][i], big[n][i + 1] + small[n][i + 1]};
      if (to.pairs) {
        *reinterpret_cast<float2*>(at) = two;
      } else {
        at[0] = two.x;
        if (both) at[1] = two.y;
      }
    });
  }
  /// Adds that part, which this thread has stored. Before products, so that these hide the way to memory.
  __device__ __forceinline__ void add_stored(const OutRows& from, int row0, int column0) {
    each_pair(from, row0, column0, [&](const float* at, int n, int i, bool both) {
      big[n][i] += at[0];
      if (both) big[n][i + 1] += at[1];
    });
  }

  /// sums[half * 64 + row] += sum over this tile's columns of value times x(row, column); the two halves of
  /// the columns are different warps'.
  template <class X>
  __device__ void add_row_sums(X x, float* sums) const {
    const WarpPlace w;
    float two[2] = {0, 0};
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        two[i >> 1] +=
            (big[n][i] + small[n][i]) * x(w.row + w.g + 8 * (i >> 1), w.column + 8 * n + 2 * w.t + (i & 1));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      two[r] += __shfl_xor_sync(kEveryLane, two[r], 1);
      two[r] += __shfl_xor_sync(kEveryLane, two[r], 2);
      if (w.t == 0) sums[w.column / 32 * kC + w.row + w.g + 8 * r] += two[r];
    }
  }

 private:
  /// use(where, n, i, both) for every two neighbours big[n][i], big[n][i + 1] of which one at least is there.
  template <class Use>
  __device__ __forceinline__ void each_pair(const OutRows& to, int row0, int column0, Use use) const {
    const WarpPlace w;
    const int stride = static_cast<int>(to.columns), row = w.row + w.g, column = w.column + 2 * w.t;
    const int rows_left = static_cast<int>(to.rows) - row0 - row, columns_left = stride - column0 - column;
    float* first = to.data + (row0 + row) * to.columns + column0 + column;
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int n = 0; n < 4; ++n)
        if (8 * r < rows_left && 8 * n < columns_left)
          use(first + (8 * r * stride + 8 * n), n, 2 * r, to.pairs || 8 * n + 1 < columns_left);
  }
  static __device__ __forceinline__ Split factor(float x) {
    if constexpr (kExact) return split(x);
    return {__float_as_uint(x), 0};  // rounded already
  }
};

}  // namespace rankscope::cuda
