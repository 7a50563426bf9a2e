// Heads of width 16 to 128 over 16 keys. A warp takes 32 columns of one sequence: two heads of 16, one of 32,
// or a part of a wider one. Scores and mixing are 16 x 16 products on the tensor cores (mma.cuh), the
// fragment that the scores come out in is the one that mixing takes them in, and rows go from global memory
// to registers and back. The backward pass computes the scores a second time, transposed, for the products
// over queries; its second look at Q, K and dout finds them in the first-level cache.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/softmax.cuh"
#include "kernels/cuda/tiles.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kKeys = 16, kThreads = 128, kWarps = kThreads / kWarp;

// What a warp takes: kHeads heads; in the backward pass of a wide one only kPart columns.
template <int W>
struct Shape {
  static constexpr int kHeads = W < 32 ? 32 / W : 1;
  static constexpr int kPart = W < 32 ? W : 32;
  static constexpr int kParts = W / kPart;  // warps that share a head in the backward pass
};

struct Place {
  int trial, column, columns;
  int64_t row;
  float scale;
};

// The place of this warp where each takes `width` columns.
__device__ __forceinline__ bool find_place(const Group& group, int width, Place& place) {
  const int columns = group.heads * group.width_qk;
  const int units = (columns + width - 1) / width;
  const int64_t unit = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  const int64_t sequence = unit / units;
  place = {group.trial[blockIdx.y], static_cast<int>(unit - sequence * units) * width, columns,
           sequence * kKeys, group.scale[blockIdx.y]};
  return sequence < group.sequences;
}

template <class Tile>
__device__ __forceinline__ void load_tile(const Operand<const float>& x, const Place& place, int column,
                                          Lane lane, Tile& tile) {
  load_rows(x.at(place.trial, place.row) + column, x.rows.row, lane, tile);
}

template <int P>
__device__ __forceinline__ void mix_and_store(const Square& weights, const ColumnTile<P>& rows,
                                              const Operand<float>& to, const Place& place, int column,
                                              Lane lane) {
  const Mixed<P> out(Weights(weights), rows);
  out.store(to.at(place.trial, place.row) + column, to.rows.row, lane);
}

// The statistic of query 8n + 2t + e, which lanes with g = 2t + e hold for row n.
__device__ __forceinline__ float of_query(const float (&rows)[2], int n, int e, Lane lane) {
  return __shfl_sync(kEveryLane, rows[n], 4 * (2 * lane.t + e));
}

template <int W>
__global__ __launch_bounds__(kThreads) void forward_kernel(const __grid_constant__ Forward f) {
  constexpr int kHeads = Shape<W>::kHeads;
  Place place;
  if (!find_place(f.group, kHeads * W, place)) return;
  const Lane lane;
  RowTile<W> q[kHeads], k[kHeads];
  ColumnTile<W> v[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int column = place.column + h * W;
    if (column >= place.columns) break;
    load_tile(f.q, place, column, lane, q[h]);
    load_tile(f.k, place, column, lane, k[h]);
    load_tile(f.v, place, column, lane, v[h]);
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int column = place.column + h * W;
    if (column >= place.columns) break;
    Sum scores[2];
    add_row_products(q[h], k[h], scores);
    Square weights = total(scores);
    softmax(weights, place.scale * kLog2E);
    mix_and_store(weights, v[h], f.out, place, column, lane);
  }
}

// The products over the columns of one head, each also transposed.
struct Products {
  Square qk, kq, dout_v, v_dout;

  template <int P>
  __device__ __forceinline__ Products(const RowTile<P>& q, const RowTile<P>& k, const RowTile<P>& v,
                                      const RowTile<P>& dout)
      : qk(product(q, k)), kq(product(k, q)), dout_v(product(dout, v)), v_dout(product(v, dout)) {}

  // Adds up what kParts neighbouring warps have, each of its columns, in the order of the columns.
  template <int kParts>
  __device__ __forceinline__ void add_parts() {
    __shared__ float parts[kWarps][4][8][kWarp];
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, first = warp / kParts * kParts;
    Square* squares[4] = {&qk, &kq, &dout_v, &v_dout};
#pragma unroll
    for (int s = 0; s < 4; ++s)
#pragma unroll
      for (int i = 0; i < 8; ++i) parts[warp][s][i][lane] = squares[s]->x[i / 4][i % 4];
    __syncthreads();
#pragma unroll
    for (int s = 0; s < 4; ++s)
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float sum = parts[first][s][i][lane];
#pragma unroll
        for (int p = 1; p < kParts; ++p) sum += parts[first + p][s][i][lane];
        squares[s]->x[i / 4][i % 4] = sum;
      }
  }

 private:
  template <int P>
  static __device__ __forceinline__ Square product(const RowTile<P>& a, const RowTile<P>& b) {
    Sum sum[2];
    add_row_products(a, b, sum);
    return total(sum);
  }
};

// What mixing takes: dscores = scale * p * (dp - sum_j p dp) with dp = <dout_i, v_j>, and transposed.
struct Gradients {
  Square ds, ds_transposed, p_transposed;

  __device__ __forceinline__ Gradients(const Products& products, float scale, Lane lane) {
    Square p = products.qk;
    const Square& dp = products.dout_v;
    const RowStatistics rows = softmax(p, scale * kLog2E);
    for_each_place([&](int n, int i) { ds.x[n][i] = p.x[n][i] * dp.x[n][i]; });
    const float mean[2] = {across_keys_sum(ds, 0), across_keys_sum(ds, 1)};
    for_each_place([&](int n, int i) { ds.x[n][i] = scale * p.x[n][i] * (dp.x[n][i] - mean[i / 2]); });

#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float peak = of_query(rows.peak, n, e, lane), share = of_query(rows.share, n, e, lane);
        const float query_mean = of_query(mean, n, e, lane);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int i = 2 * r + e;
          const float weight = exp2_fast(fmaf(products.kq.x[n][i], scale * kLog2E, -peak)) * share;
          p_transposed.x[n][i] = weight;
          ds_transposed.x[n][i] = scale * weight * (products.v_dout.x[n][i] - query_mean);
        }
      }
  }
};

template <int W>
__global__ __launch_bounds__(kThreads, 4) void backward_kernel(const __grid_constant__ Backward b) {
  constexpr int kHeads = Shape<W>::kHeads, kPart = Shape<W>::kPart, kParts = Shape<W>::kParts;
  Place place;
  if (!find_place(b.group, kHeads * kPart, place)) return;
  const Lane lane;
  RowTile<kPart> q[kHeads], k[kHeads], v[kHeads], dout[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int column = place.column + h * W;
    if (column >= place.columns) break;
    load_tile(b.q, place, column, lane, q[h]);
    load_tile(b.k, place, column, lane, k[h]);
    load_tile(b.v, place, column, lane, v[h]);
    load_tile(b.dout, place, column, lane, dout[h]);
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int column = place.column + h * W;
    if (column >= place.columns) break;
    Products products(q[h], k[h], v[h], dout[h]);
    if constexpr (kParts > 1) products.add_parts<kParts>();
    const Gradients gradients(products, place.scale, lane);
    ColumnTile<kPart> rows;
    load_tile(b.k, place, column, lane, rows);
    mix_and_store(gradients.ds, rows, b.dq, place, column, lane);
    load_tile(b.q, place, column, lane, rows);
    mix_and_store(gradients.ds_transposed, rows, b.dk, place, column, lane);
    if (b.dv.data == nullptr) continue;
    load_tile(b.dout, place, column, lane, rows);
    mix_and_store(gradients.p_transposed, rows, b.dv, place, column, lane);
  }
}

dim3 grid_of(const Group& group, int width, const char* kernel) {
  const int64_t units = (int64_t{group.heads} * group.width_qk + width - 1) / width;
  return dim3(blocks_for(group.sequences * units, kWarps, kernel), group.members);
}

}  // namespace

template <int W>
void tile_forward(const Forward& f, cudaStream_t stream) {
  forward_kernel<W><<<grid_of(f.group, Shape<W>::kHeads * W, "tile_forward"), kThreads, 0, stream>>>(f);
  check_launch("tile_forward");
}

template <int W>
void tile_backward(const Backward& b, cudaStream_t stream) {
  constexpr int kWidth = Shape<W>::kHeads * Shape<W>::kPart;
  backward_kernel<W><<<grid_of(b.group, kWidth, "tile_backward"), kThreads, 0, stream>>>(b);
  check_launch("tile_backward");
}

#define RANKSCOPE_WIDTH(W)                                     \
  template void tile_forward<W>(const Forward&, cudaStream_t); \
  template void tile_backward<W>(const Backward&, cudaStream_t);
RANKSCOPE_WIDTH(16)
RANKSCOPE_WIDTH(32)
RANKSCOPE_WIDTH(64)
RANKSCOPE_WIDTH(128)
#undef RANKSCOPE_WIDTH

}  // namespace rankscope::cuda
