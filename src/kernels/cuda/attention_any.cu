// Softmax attention for every shape the fast kernels do not take: any head width, up to 256 queries and keys,
// values shared by all heads, rows that are not aligned. One block a head (a sequence, where heads share
// values: their gradients then add up in a fixed order), one warp 16 queries, and in the second half of the
// backward pass 16 keys. Scores are 16 x 16 products on the tensor cores as in attention_tiles.cu, computed
// again each time they are needed; what hangs over the edge is read as zero and not written.
#include <algorithm>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/softmax.cuh"
#include "kernels/cuda/tiles.cuh"

namespace rankscope::cuda {
namespace {

constexpr int kSide = 16, kMaxWarps = 8, kMaxTokens = 256;

// The rows of one head. `wide`: every fourth column is aligned to 16 bytes.
template <class T>
struct HeadRows {
  T* data;
  int64_t stride;
  int rows, width;
  bool wide;
};

template <class T>
__device__ __forceinline__ HeadRows<T> head_rows(const Operand<T>& x, int trial, int64_t row, int column,
                                                 int rows, int width, bool wide) {
  return {x.data == nullptr ? nullptr : x.at(trial, row) + column, x.rows.row, rows, width, wide};
}

// N columns of a row, zero beyond its end.
template <int N>
__device__ __forceinline__ void load_some(const HeadRows<const float>& x, int row, int column, float* to) {
  const float* from = x.data + row * x.stride + column;
  const int left = row < x.rows ? x.width - column : 0;
  if (x.wide && left >= N) return load_floats<N>(from, to);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = i < left ? from[i] : 0.0f;
}

template <class Tile>
__device__ __forceinline__ Tile load_tile(const HeadRows<const float>& x, int row, int column, Lane lane) {
  Tile tile;
#pragma unroll
  for (int r = 0; r < Tile::kRows; ++r)
#pragma unroll
    for (int c = 0; c < Tile::kEach; c += Tile::kVector)
      load_some<Tile::kVector>(x, row + Tile::row(r, lane), column + Tile::column(c, lane), &tile.x[r][c]);
  return tile;
}

// 16 rows of a, from row i on, times 16 rows of b, from row j on, P columns at a time.
template <int P>
__device__ __forceinline__ Square products(const HeadRows<const float>& a, int i,
                                           const HeadRows<const float>& b, int j, Lane lane) {
  Sum sum[2];
#pragma unroll 1
  for (int c = 0; c < a.width; c += P)
    add_row_products(load_tile<RowTile<P>>(a, i, c, lane), load_tile<RowTile<P>>(b, j, c, lane), sum);
  return total(sum);
}

// Scores of 16 queries and 16 keys in powers of two, -inf for keys that are not there.
template <int P>
__device__ __forceinline__ Square scores(const HeadRows<const float>& q, int i,
                                         const HeadRows<const float>& k, int j, float scale, Lane lane) {
  Square s = products<P>(q, i, k, j, lane);
  for_each_place([&](int n, int e) {
    const bool there = j + 8 * n + 2 * lane.t + e % 2 < k.rows;
    s.x[n][e] = there ? s.x[n][e] * scale : -INFINITY;
  });
  return s;
}

// 16 rows of P columns that grow block by block.
template <int P>
struct Accumulator {
  float x[2][Mixed<P>::kEach * 2] = {};
  __device__ __forceinline__ void add(const Square& weights, const HeadRows<const float>& rows, int row,
                                      int column, Lane lane) {
    const Mixed<P> part(Weights(weights), load_tile<ColumnTile<P>>(rows, row, column, lane));
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int c = 0; c < Mixed<P>::kEach * 2; ++c) x[r][c] += part.x[r][c];
  }
  __device__ __forceinline__ void store(const HeadRows<float>& to, int row, int column, bool add,
                                        Lane lane) const {
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int c = 0; c < Mixed<P>::kEach * 2; ++c) {
        const int at = row + lane.g + 8 * r, col = column + Mixed<P>::column(c, lane);
        if (at >= to.rows || col >= to.width) continue;
        float& place = to.data[at * to.stride + col];
        place = add ? place + x[r][c] : x[r][c];
      }
  }
};

// The largest score, the sum of powers, and the sum of powers times `values`, of rows g and g + 8, as blocks
// of keys pass by.
struct Running {
  float peak[2] = {-INFINITY, -INFINITY}, sum[2] = {}, weighted[2] = {};
  __device__ __forceinline__ void add(const Square& s, const Square& values) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float next = fmaxf(peak[r], across_keys_max(s, r)), shrink = exp2_fast(peak[r] - next);
      Square e, w;
      for_each_place([&](int n, int i) {
        e.x[n][i] = exp2_fast(s.x[n][i] - next);
        w.x[n][i] = e.x[n][i] * values.x[n][i];
      });
      sum[r] = fmaf(sum[r], shrink, across_keys_sum(e, r));
      weighted[r] = fmaf(weighted[r], shrink, across_keys_sum(w, r));
      peak[r] = next;
    }
  }
};

// Which head of which sequence a block has.
struct Place {
  int trial, first_head, last_head;
  int64_t sequence;
  float scale;
};

__device__ __forceinline__ Place find_place(const Group& g, bool all_heads) {
  const int64_t sequence = all_heads ? blockIdx.x : blockIdx.x / g.heads;
  const int head = all_heads ? 0 : static_cast<int>(blockIdx.x - sequence * g.heads);
  return {g.trial[blockIdx.y], head, all_heads ? g.heads : head + 1, sequence, g.scale[blockIdx.y]};
}

template <int P>
__global__ __launch_bounds__(kMaxWarps* kWarp) void forward_kernel(const __grid_constant__ Forward f,
                                                                   bool wide) {
  const Group& g = f.group;
  const Place p = find_place(g, false);
  const int head = p.first_head, column = head * g.width_qk, out_column = head * g.width_v;
  const int64_t query_row = p.sequence * g.queries, key_row = p.sequence * g.keys;
  const auto q = head_rows(f.q, p.trial, query_row, column, g.queries, g.width_qk, wide);
  const auto k = head_rows(f.k, p.trial, key_row, column, g.keys, g.width_qk, wide);
  const auto v = head_rows(f.v, p.trial, key_row, g.shared_values ? 0 : out_column, g.keys, g.width_v, wide);
  const auto out = head_rows(f.out, p.trial, query_row, out_column, g.queries, g.width_v, wide);
  const float scale = p.scale * kLog2E;
  const Lane lane;
  for (int i = threadIdx.x / kWarp * kSide; i < g.queries; i += blockDim.x / kWarp * kSide) {
    Running rows;
    for (int j = 0; j < g.keys; j += kSide) rows.add(scores<P>(q, i, k, j, scale, lane), Square{});
    const float share[2] = {1.0f / rows.sum[0], 1.0f / rows.sum[1]};
    for (int c = 0; c < g.width_v; c += P) {
      Accumulator<P> sum;
      for (int j = 0; j < g.keys; j += kSide) {
        Square s = scores<P>(q, i, k, j, scale, lane);
        for_each_place(
            [&](int n, int e) { s.x[n][e] = exp2_fast(s.x[n][e] - rows.peak[e / 2]) * share[e / 2]; });
        sum.add(s, v, j, c, lane);
      }
      sum.store(out, i, c, false, lane);
    }
  }
}

template <int P>
__global__ __launch_bounds__(kMaxWarps* kWarp) void backward_kernel(const __grid_constant__ Backward b,
                                                                    bool wide) {
  __shared__ float peak[kMaxTokens], share[kMaxTokens], mean[kMaxTokens];  // of each query
  const Group& g = b.group;
  const Place p = find_place(g, g.shared_values);
  const int64_t query_row = p.sequence * g.queries, key_row = p.sequence * g.keys;
  const int first = threadIdx.x / kWarp * kSide, step = blockDim.x / kWarp * kSide;
  const float scale = p.scale * kLog2E;
  const Lane lane;
  for (int head = p.first_head; head < p.last_head; ++head) {
    const int column = head * g.width_qk, out_column = head * g.width_v;
    const int value_column = g.shared_values ? 0 : out_column;
    const auto q = head_rows(b.q, p.trial, query_row, column, g.queries, g.width_qk, wide);
    const auto k = head_rows(b.k, p.trial, key_row, column, g.keys, g.width_qk, wide);
    const auto v = head_rows(b.v, p.trial, key_row, value_column, g.keys, g.width_v, wide);
    const auto dout = head_rows(b.dout, p.trial, query_row, out_column, g.queries, g.width_v, wide);
    const auto dq = head_rows(b.dq, p.trial, query_row, column, g.queries, g.width_qk, wide);
    const auto dk = head_rows(b.dk, p.trial, key_row, column, g.keys, g.width_qk, wide);
    const auto dv = head_rows(b.dv, p.trial, key_row, value_column, g.keys, g.width_v, wide);

    for (int i = first; i < g.queries; i += step) {
      Running rows;
      for (int j = 0; j < g.keys; j += kSide)
        rows.add(scores<P>(q, i, k, j, scale, lane), products<P>(dout, i, v, j, lane));
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        rows.sum[r] = 1.0f / rows.sum[r];
        rows.weighted[r] *= rows.sum[r];
        if (lane.t != 0) continue;
        peak[i + lane.g + 8 * r] = rows.peak[r];
        share[i + lane.g + 8 * r] = rows.sum[r];
        mean[i + lane.g + 8 * r] = rows.weighted[r];
      }
      for (int c = 0; c < g.width_qk; c += P) {
        Accumulator<P> sum;
        for (int j = 0; j < g.keys; j += kSide) {
          Square ds = scores<P>(q, i, k, j, scale, lane);
          const Square dp = products<P>(dout, i, v, j, lane);
          for_each_place([&](int n, int e) {
            const float weight = exp2_fast(ds.x[n][e] - rows.peak[e / 2]) * rows.sum[e / 2];
            ds.x[n][e] = p.scale * weight * (dp.x[n][e] - rows.weighted[e / 2]);
          });
          sum.add(ds, k, j, c, lane);
        }
        sum.store(dq, i, c, false, lane);
      }
    }
    __syncthreads();

    // Transposed: rows are keys, and queries beyond the last have no rows to mix.
    const auto weights = [&](int j, int i) {
      Square s = products<P>(k, j, q, i, lane);
      for_each_place([&](int n, int e) {
        const int query = i + 8 * n + 2 * lane.t + e % 2;
        s.x[n][e] = exp2_fast(fmaf(s.x[n][e], scale, -peak[query])) * share[query];
      });
      return s;
    };
    for (int j = first; j < g.keys; j += step) {
      for (int c = 0; c < g.width_qk; c += P) {
        Accumulator<P> sum;
        for (int i = 0; i < g.queries; i += kSide) {
          Square ds = weights(j, i);
          const Square dp = products<P>(v, j, dout, i, lane);
          for_each_place([&](int n, int e) {
            ds.x[n][e] *= p.scale * (dp.x[n][e] - mean[i + 8 * n + 2 * lane.t + e % 2]);
          });
          sum.add(ds, q, i, c, lane);
        }
        sum.store(dk, j, c, false, lane);
      }
      for (int c = 0; dv.data != nullptr && c < g.width_v; c += P) {
        Accumulator<P> sum;
        for (int i = 0; i < g.queries; i += kSide) sum.add(weights(j, i), dout, i, c, lane);
        sum.store(dv, j, c, head > p.first_head, lane);
      }
    }
    __syncthreads();
  }
}

unsigned threads_of(const Group& g) {
  return kWarp * std::clamp((std::max(g.queries, g.keys) + kSide - 1) / kSide, 1, kMaxWarps);
}

bool narrow(const Group& g) { return g.width_qk <= 16 && g.width_v <= 16; }

}  // namespace

void any_forward(const Forward& f, bool aligned, cudaStream_t stream) {
  const Group& g = f.group;
  const bool wide = aligned && g.width_qk % 4 == 0 && g.width_v % 4 == 0;
  const dim3 grid(blocks_for(int64_t{g.sequences} * g.heads, 1, "any_forward"), g.members);
  if (narrow(g))
    forward_kernel<16><<<grid, threads_of(g), 0, stream>>>(f, wide);
  else
    forward_kernel<32><<<grid, threads_of(g), 0, stream>>>(f, wide);
  check_launch("any_forward");
}

void any_backward(const Backward& b, bool aligned, cudaStream_t stream) {
  const Group& g = b.group;
  const bool wide = aligned && g.width_qk % 4 == 0 && g.width_v % 4 == 0;
  const dim3 grid(blocks_for(int64_t{g.sequences} * (g.shared_values ? 1 : g.heads), 1, "any_backward"),
                  g.members);
  if (narrow(g))
    backward_kernel<16><<<grid, threads_of(g), 0, stream>>>(b, wide);
  else
    backward_kernel<32><<<grid, threads_of(g), 0, stream>>>(b, wide);
  check_launch("any_backward");
}

}  // namespace rankscope::cuda
