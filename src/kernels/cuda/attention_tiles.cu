// Heads of width 4 to 128 over 16 keys. One warp takes 32 neighbouring columns (or one wider head) of one
// sequence: scores and mixing are 16 x 16 products on the tensor cores (mma.cuh), the fragment that the
// scores come out in is the one that mixing takes them in, and rows go from global memory to registers and
// back. The backward pass computes the scores a second time, transposed, for the products over queries; its
// second look at Q, K and dout finds them in the first-level cache.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/tiles.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kKeys = 16, kThreads = 128;

// A tile is one head, or two of width 4: the tensor cores mix 8 columns at a time.
template <int W>
struct Shape {
  static constexpr int kTile = W < 8 ? 8 : W;
  static constexpr int kHeads = kTile / W;                // in a tile
  static constexpr int kUnit = W < 32 ? 32 : W;           // columns of a warp
  static constexpr int kTiles = kUnit / kTile;            // in a unit
  static constexpr int kMixed = kTile < 32 ? kTile : 32;  // columns mixed together
};

struct Place {
  int trial, column, columns;
  int64_t row;
  float scale;
};

template <int W>
__device__ __forceinline__ bool find_place(const Group& group, Place& place) {
  const int columns = group.heads * W;
  const int units = (columns + Shape<W>::kUnit - 1) / Shape<W>::kUnit;
  const int64_t unit = int64_t{blockIdx.x} * (kThreads / kWarp) + threadIdx.x / kWarp;
  const int64_t sequence = unit / units;
  if (sequence >= group.sequences) return false;
  place = {group.trial[blockIdx.y], static_cast<int>(unit - sequence * units) * Shape<W>::kUnit, columns,
           sequence * kKeys, group.scale[blockIdx.y]};
  return true;
}

template <int W>
struct HeadRows {
  RowTile<W> head[Shape<W>::kHeads];
  __device__ __forceinline__ void load(const Operand<const float>& x, const Place& place, int column,
                                       Lane lane) {
#pragma unroll
    for (int h = 0; h < Shape<W>::kHeads; ++h)
      head[h].load(x.at(place.trial, place.row) + column + h * W, x.rows.row, lane);
  }
};

template <int T>
__device__ __forceinline__ ColumnTile<T> load_columns(const Operand<const float>& x, const Place& place,
                                                      int column, Lane lane) {
  ColumnTile<T> tile;
  tile.load(x.at(place.trial, place.row) + column, x.rows.row, lane);
  return tile;
}

// Weights of a tile's heads times its rows: of two heads of width 4 each lane keeps the one its columns are
// of.
template <int W, int T>
__device__ __forceinline__ void mix_and_store(const Square (&squares)[Shape<W>::kHeads],
                                              const ColumnTile<T>& rows, const Operand<float>& to,
                                              const Place& place, int column, Lane lane) {
  Mixed<T> out(Weights(squares[0]), rows);
  if constexpr (Shape<W>::kHeads == 2) {
    const Mixed<T> second(Weights(squares[1]), rows);
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int c = 0; c < 2; ++c) out.x[r][c] = lane.t < 2 ? out.x[r][c] : second.x[r][c];
  }
  out.store(to.at(place.trial, place.row) + column, to.rows.row, lane);
}

// The same from global memory, part by part.
template <int W>
__device__ __forceinline__ void mix_rows(const Square (&squares)[Shape<W>::kHeads],
                                         const Operand<const float>& rows, const Operand<float>& to,
                                         const Place& place, int column, Lane lane) {
  constexpr int kMixed = Shape<W>::kMixed;
#pragma unroll 1
  for (int c = 0; c < Shape<W>::kTile; c += kMixed)
    mix_and_store<W>(squares, load_columns<kMixed>(rows, place, column + c, lane), to, place, column + c,
                     lane);
}

// Sums and maxima over the keys of rows g and g + 8: four numbers here, and those of three neighbours.
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

// Scores to weights, in place. `scale` holds the factor log2(e).
__device__ __forceinline__ RowStatistics softmax(Square& s, float scale) {
  RowStatistics rows;
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) s.x[n][i] *= scale;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    rows.peak[r] = across_keys_max(s, r);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) s.x[n][2 * r + e] = exp2_fast(s.x[n][2 * r + e] - rows.peak[r]);
    rows.share[r] = 1.0f / across_keys_sum(s, r);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) s.x[n][2 * r + e] *= rows.share[r];
  }
  return rows;
}

// The statistic of query 8n + 2t + e, which lanes with g = 2t + e hold for row n.
__device__ __forceinline__ float of_query(const float (&rows)[2], int n, int e, Lane lane) {
  return __shfl_sync(kEveryLane, rows[n], 4 * (2 * lane.t + e));
}

template <int W>
__global__ __launch_bounds__(kThreads) void forward_kernel(const __grid_constant__ Forward f) {
  using S = Shape<W>;
  Place place;
  if (!find_place<W>(f.group, place)) return;
  const Lane lane;
  HeadRows<W> q[S::kTiles], k[S::kTiles];
  ColumnTile<S::kTile> v[S::kTiles];
#pragma unroll
  for (int i = 0; i < S::kTiles; ++i) {
    const int column = place.column + i * S::kTile;
    if (column >= place.columns) break;
    q[i].load(f.q, place, column, lane);
    k[i].load(f.k, place, column, lane);
    v[i] = load_columns<S::kTile>(f.v, place, column, lane);
  }
#pragma unroll
  for (int i = 0; i < S::kTiles; ++i) {
    const int column = place.column + i * S::kTile;
    if (column >= place.columns) break;
    Square weights[S::kHeads];
#pragma unroll
    for (int h = 0; h < S::kHeads; ++h) {
      Sum scores[2];
      add_row_products(q[i].head[h], k[i].head[h], scores);
      weights[h] = total(scores);
      softmax(weights[h], place.scale * kLog2E);
    }
    mix_and_store<W>(weights, v[i], f.out, place, column, lane);
  }
}

// The products over the columns of one head, each square also transposed.
struct Products {
  Sum qk[2], kq[2], dout_v[2], v_dout[2];
  template <int R>
  __device__ __forceinline__ void add(const RowTile<R>& q, const RowTile<R>& k, const RowTile<R>& v,
                                      const RowTile<R>& dout) {
    add_row_products(q, k, qk);
    add_row_products(k, q, kq);
    add_row_products(dout, v, dout_v);
    add_row_products(v, dout, v_dout);
  }
};

// What mixing takes: dscores = scale * p * (dp - sum_j p dp) with dp = <dout_i, v_j>, and transposed.
template <int W>
struct Gradients {
  Square ds[Shape<W>::kHeads], ds_transposed[Shape<W>::kHeads], p_transposed[Shape<W>::kHeads];

  __device__ __forceinline__ void set(int h, const Products& products, float scale, Lane lane) {
    Square p = total(products.qk);
    const Square dp = total(products.dout_v);
    const RowStatistics rows = softmax(p, scale * kLog2E);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) ds[h].x[n][i] = p.x[n][i] * dp.x[n][i];
    const float mean[2] = {across_keys_sum(ds[h], 0), across_keys_sum(ds[h], 1)};
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) ds[h].x[n][i] = scale * p.x[n][i] * (dp.x[n][i] - mean[i / 2]);

    const Square scores = total(products.kq), dp_transposed = total(products.v_dout);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float peak = of_query(rows.peak, n, e, lane), share = of_query(rows.share, n, e, lane);
        const float query_mean = of_query(mean, n, e, lane);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int i = 2 * r + e;
          const float weight = exp2_fast(fmaf(scores.x[n][i], scale * kLog2E, -peak)) * share;
          p_transposed[h].x[n][i] = weight;
          ds_transposed[h].x[n][i] = scale * weight * (dp_transposed.x[n][i] - query_mean);
        }
      }
  }

  __device__ __forceinline__ void mix(const Backward& b, const Place& place, int column, Lane lane) const {
    mix_rows<W>(ds, b.k, b.dq, place, column, lane);
    mix_rows<W>(ds_transposed, b.q, b.dk, place, column, lane);
    if (b.dv.data != nullptr) mix_rows<W>(p_transposed, b.dout, b.dv, place, column, lane);
  }
};

// Narrow heads: all rows of the unit are asked for before the first is used.
template <int W>
__device__ __forceinline__ void backward_unit(const Backward& b, const Place& place, Lane lane) {
  using S = Shape<W>;
  HeadRows<W> q[S::kTiles], k[S::kTiles], v[S::kTiles], dout[S::kTiles];
#pragma unroll
  for (int i = 0; i < S::kTiles; ++i) {
    const int column = place.column + i * S::kTile;
    if (column >= place.columns) break;
    q[i].load(b.q, place, column, lane);
    k[i].load(b.k, place, column, lane);
    v[i].load(b.v, place, column, lane);
    dout[i].load(b.dout, place, column, lane);
  }
#pragma unroll
  for (int i = 0; i < S::kTiles; ++i) {
    const int column = place.column + i * S::kTile;
    if (column >= place.columns) break;
    Gradients<W> gradients;
#pragma unroll
    for (int h = 0; h < S::kHeads; ++h) {
      Products products;
      products.add(q[i].head[h], k[i].head[h], v[i].head[h], dout[i].head[h]);
      gradients.set(h, products, place.scale, lane);
    }
    gradients.mix(b, place, column, lane);
  }
}

// Wide heads: part by part.
template <int W>
__device__ __forceinline__ void backward_head(const Backward& b, const Place& place, Lane lane) {
  constexpr int kPart = 32;
  Products products;
#pragma unroll 1
  for (int c = 0; c < W; c += kPart) {
    RowTile<kPart> q, k, v, dout;
    q.load(b.q.at(place.trial, place.row) + place.column + c, b.q.rows.row, lane);
    k.load(b.k.at(place.trial, place.row) + place.column + c, b.k.rows.row, lane);
    v.load(b.v.at(place.trial, place.row) + place.column + c, b.v.rows.row, lane);
    dout.load(b.dout.at(place.trial, place.row) + place.column + c, b.dout.rows.row, lane);
    products.add(q, k, v, dout);
  }
  Gradients<W> gradients;
  gradients.set(0, products, place.scale, lane);
  gradients.mix(b, place, place.column, lane);
}

template <int W>
__global__ __launch_bounds__(kThreads,
                             W == 4 ? 3 : 4) void backward_kernel(const __grid_constant__ Backward b) {
  Place place;
  if (!find_place<W>(b.group, place)) return;
  if constexpr (W > 32)
    backward_head<W>(b, place, Lane());
  else
    backward_unit<W>(b, place, Lane());
}

template <int W>
dim3 grid_of(const Group& group, const char* kernel) {
  const int64_t units = (int64_t{group.heads} * W + Shape<W>::kUnit - 1) / Shape<W>::kUnit;
  return dim3(blocks_for(group.sequences * units, kThreads / kWarp, kernel), group.members);
}

}  // namespace

template <int W>
void tile_forward(const Forward& f, cudaStream_t stream) {
  forward_kernel<W><<<grid_of<W>(f.group, "tile_forward"), kThreads, 0, stream>>>(f);
  check_launch("tile_forward");
}

template <int W>
void tile_backward(const Backward& b, cudaStream_t stream) {
  backward_kernel<W><<<grid_of<W>(b.group, "tile_backward"), kThreads, 0, stream>>>(b);
  check_launch("tile_backward");
}

#define RANKSCOPE_WIDTH(W)                                     \
  template void tile_forward<W>(const Forward&, cudaStream_t); \
  template void tile_backward<W>(const Backward&, cudaStream_t);
RANKSCOPE_WIDTH(4)
RANKSCOPE_WIDTH(8)
RANKSCOPE_WIDTH(16)
RANKSCOPE_WIDTH(32)
RANKSCOPE_WIDTH(64)
RANKSCOPE_WIDTH(128)
#undef RANKSCOPE_WIDTH

}  // namespace rankscope::cuda
