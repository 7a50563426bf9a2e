// Linear attention by chunks, all at once: what each chunk writes, a scan over the chunks for the state
// before each, then every chunk alone. On the way back the same twice, once in each direction of time.
#include "kernels/cuda/running.cuh"
#include "kernels/cuda/running_attention.h"

namespace rankscope::cuda {
namespace {

__device__ __forceinline__ float polynomial(int degree, float s) {
  if (degree == 0) return s;
  if (degree == 1) return 1 + s;
  if (degree == 2) return 1 + s * (1 + s * 0.5f);
  return 1 + s * (1 + s * (0.5f + s * (1.0f / 6)));
}
__device__ __forceinline__ float slope(int degree, float s) {
  return degree <= 1 ? 1.0f : polynomial(degree - 1, s);
}

// Monomial f of row `row` of x.
__device__ __forceinline__ float monomial(const LinearAttention& a, const ChunkRows& x, int row, int f) {
  if (a.degree == 0) return x(row, f);
  if (row >= x.n || f >= a.monomials.count) return 0;
  float value = 1;
  for (; a.monomials.channel[f] >= 0; f = a.monomials.parent[f])
    value *= static_cast<float>(a.monomials.factor[f]) * x(row, a.monomials.channel[f]);
  return value;
}

// Adds to dx [width] the gradient g of monomial f.
__device__ __forceinline__ void through_monomial(const LinearAttention& a, const ChunkRows& x, int row, int f,
                                                 float g, float* dx) {
  int channel[3], count = 0;
  for (; a.monomials.channel[f] >= 0; f = a.monomials.parent[f]) {
    g *= static_cast<float>(a.monomials.factor[f]);
    channel[count++] = a.monomials.channel[f];
  }
  for (int c = 0; c < count; ++c) {
    float value = g;
    for (int other = 0; other < count; ++other)
      if (other != c) value *= x(row, channel[other]);
    dx[channel[c]] += value;
  }
}

__device__ __host__ __forceinline__ int64_t tiles(int64_t size) { return (size + kC - 1) / kC; }

template <bool kExact>
__global__ __launch_bounds__(kRunningThreads) void write_states_kernel(LinearAttention a, int64_t rows,
                                                                       bool queries, const float* x,
                                                                       const float* y, const float* keep,
                                                                       float* states, float* whole) {
  const int64_t row_tiles = tiles(rows), each = row_tiles * tiles(a.width_v);
  const Chunk c(blockIdx.x / each, a.tokens);
  const int64_t tile = blockIdx.x % each;
  const int row0 = static_cast<int>(tile % row_tiles) * kC, column0 = static_cast<int>(tile / row_tiles) * kC;
  float *stage = running_shared, *kept = stage + kStage, *weight = kept + kC;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kC) kept[thread] = thread >= c.n ? 0.0f : keep == nullptr ? 1.0f : keep[c.first + thread];
  __syncthreads();
  if (thread < kC) {
    float product = 1;
    if (queries)
      for (int j = 0; j <= thread; ++j) product *= kept[j];
    else
      for (int j = thread + 1; j < c.n; ++j) product *= kept[j];
    weight[thread] = thread < c.n ? product : 0.0f;
    if (tile == 0 && thread == 0) {
      // Of the whole chunk: the first token's own share is in one of the two and not in the other.
      float all = 1;
      for (int j = 0; j < c.n; ++j) all *= kept[j];
      whole[c.state(1)] = all;
    }
  }
  __syncthreads();
  const ChunkRows from(c, x, a.width_qk), to(c, y, a.width_v);
  Product<kExact> sum;
  sum.template add<Along::tile, Along::tile>(
      c.n, [&](int row, int token) { return weight[token] * monomial(a, from, token, row0 + row); },
      [&](int token, int column) { return to(token, column0 + column); }, stage);
  float* out = states + c.state(rows * a.width_v);
  sum.each([&](int row, int column, float value) {
    if (row0 + row < rows && column0 + column < a.width_v)
      out[static_cast<int64_t>(row0 + row) * a.width_v + column0 + column] = value;
  });
}

__global__ __launch_bounds__(kRunningThreads) void scan_states_kernel(int64_t sequences, int64_t chunks,
                                                                      int64_t size, bool backward,
                                                                      const float* whole, float* states) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kRunningThreads + threadIdx.x;
  if (i >= sequences * size) return;
  const int64_t sequence = i / size, element = i % size;
  float* at = states + sequence * chunks * size + element;
  const float* kept = whole + sequence * chunks;
  float state = 0;
#pragma unroll 8
  for (int64_t step = 0; step < chunks; ++step) {
    const int64_t c = backward ? chunks - 1 - step : step;
    const float here = at[c * size];
    at[c * size] = state;
    state = kept[c] * state + here;
  }
}

template <bool kExact>
__global__ __launch_bounds__(kRunningThreads) void outputs_kernel(LinearAttention a, int64_t rows,
                                                                  const float* q, const float* k,
                                                                  const float* v, const float* keep,
                                                                  const float* states, float* out) {
  const Chunk c(blockIdx.x, a.tokens);
  float *stage = running_shared, *P = stage + kStage;
  const KeptInChunk kept(c, keep, P + kSquare);
  const ChunkRows Q(c, q, a.width_qk), K(c, k, a.width_qk), V(c, v, a.width_v);
  const StateMatrix S{states + c.state(rows * a.width_v), rows, a.width_v};
  {
    Product<kExact> s;
    s.template add<Along::terms, Along::terms>(
        static_cast<int>(a.width_qk), [&](int i, int x) { return Q(i, x); },
        [&](int x, int j) { return K(j, x); }, stage);
    s.each([&](int i, int j, float value) {
      P[i * kSquareRow + j] = kept.between(i, j) * polynomial(a.degree, value);
    });
  }
  __syncthreads();
  for (int column0 = 0; column0 < a.width_v; column0 += kC) {
    Product<kExact> o;
    o.template add<Along::terms, Along::tile>(
        c.n, [&](int i, int j) { return P[i * kSquareRow + j]; },
        [&](int j, int y) { return V(j, column0 + y); }, stage);
    if (c.chunk > 0)
      o.template add<Along::terms, Along::tile>(
          static_cast<int>(rows), [&](int i, int f) { return kept.before[i] * monomial(a, Q, i, f); },
          [&](int f, int y) { return S(f, column0 + y); }, stage);
    o.each([&](int i, int y, float value) {
      if (i < c.n && column0 + y < a.width_v) out[(c.first + i) * a.width_v + column0 + y] = value;
    });
  }
}

// dx [64, width] = pairs + diag(weight) (Y S^T) for degree 0; otherwise that is the gradient of monomials and
// goes through them. `pairs` adds what comes from inside the chunk.
template <bool kExact, class Pairs>
__device__ void row_gradients(const LinearAttention& a, int64_t rows, const Chunk& c, const ChunkRows& X,
                              const ChunkRows& Y, const StateMatrix& S, const float* weight, bool there,
                              Pairs pairs, float* stage, float* spread, float* dx) {
  const int d = static_cast<int>(a.width_qk), e = static_cast<int>(a.width_v);
  const int thread = static_cast<int>(threadIdx.x);
  const auto from_state = [&](Product<kExact>& sum, int first) {
    sum.template add<Along::terms, Along::terms>(
        e, [&](int i, int y) { return weight[i] * Y(i, y); }, [&](int y, int f) { return S(first + f, y); },
        stage);
  };
  // Four threads a row, each with a sum of its own: the same bits every time.
  float* own = spread + static_cast<int64_t>(thread) * d;
  if (a.degree > 0 && there) {
    for (int x = 0; x < d; ++x) own[x] = 0;
    float* tile = spread + static_cast<int64_t>(kRunningThreads) * d;
    for (int f0 = 0; f0 < rows; f0 += kC) {
      Product<kExact> sum;
      from_state(sum, f0);
      sum.each([&](int i, int f, float value) { tile[i * kSquareRow + f] = value; });
      __syncthreads();
      const int row = thread % kC, quarter = thread / kC * (kC / 4);
      if (row < c.n)
        for (int f = quarter; f < quarter + kC / 4 && f0 + f < rows; ++f)
          through_monomial(a, X, row, f0 + f, tile[row * kSquareRow + f], own);
      __syncthreads();
    }
  }
  for (int x0 = 0; x0 < d; x0 += kC) {
    Product<kExact> sum;
    pairs(sum, x0);
    if (a.degree == 0 && there) from_state(sum, x0);
    sum.each([&](int i, int x, float value) {
      if (i >= c.n || x0 + x >= d) return;
      if (a.degree > 0 && there)
        for (int part = 0; part < 4; ++part)
          value += spread[static_cast<int64_t>(part * kC + i) * d + x0 + x];
      dx[(c.first + i) * d + x0 + x] = value;
    });
  }
  __syncthreads();
}

template <bool kExact>
__global__ __launch_bounds__(kRunningThreads) void gradients_kernel(
    LinearAttention a, int64_t rows, const float* q, const float* k, const float* v, const float* keep,
    const float* dout, const float* states, const float* dstates, float* dq, float* dk, float* dv) {
  const Chunk c(blockIdx.x, a.tokens);
  float *stage = running_shared, *P = stage + kStage, *ds = P + kSquare;
  const KeptInChunk kept(c, keep, ds + kSquare);
  float* spread = ds + kSquare + KeptInChunk::kFloats;
  const ChunkRows Q(c, q, a.width_qk), K(c, k, a.width_qk), V(c, v, a.width_v), dO(c, dout, a.width_v);
  const StateMatrix S{states + c.state(rows * a.width_v), rows, a.width_v};
  const StateMatrix dS{dstates + c.state(rows * a.width_v), rows, a.width_v};
  const bool earlier = c.chunk > 0, later = c.chunk + 1 < c.chunks;
  {
    Product<kExact> s, dp;
    s.template add<Along::terms, Along::terms>(
        static_cast<int>(a.width_qk), [&](int i, int x) { return Q(i, x); },
        [&](int x, int j) { return K(j, x); }, stage);
    dp.template add<Along::terms, Along::terms>(
        static_cast<int>(a.width_v), [&](int i, int y) { return dO(i, y); },
        [&](int y, int j) { return V(j, y); }, stage);
    s.each([&](int i, int j, float value) {
      P[i * kSquareRow + j] = kept.between(i, j) * polynomial(a.degree, value);
      ds[i * kSquareRow + j] = kept.between(i, j) * slope(a.degree, value);
    });
    // The same thread has the same places of both.
    dp.each([&](int i, int j, float value) { ds[i * kSquareRow + j] *= value; });
  }
  __syncthreads();
  row_gradients<kExact>(
      a, rows, c, Q, dO, S, kept.before, earlier,
      [&](Product<kExact>& sum, int x0) {
        sum.template add<Along::terms, Along::tile>(
            c.n, [&](int i, int j) { return ds[i * kSquareRow + j]; },
            [&](int j, int x) { return K(j, x0 + x); }, stage);
      },
      stage, spread, dq);
  row_gradients<kExact>(
      a, rows, c, K, V, dS, kept.to_end, later,
      [&](Product<kExact>& sum, int x0) {
        sum.template add<Along::tile, Along::tile>(
            c.n, [&](int j, int i) { return ds[i * kSquareRow + j]; },
            [&](int i, int x) { return Q(i, x0 + x); }, stage);
      },
      stage, spread, dk);
  for (int y0 = 0; y0 < a.width_v; y0 += kC) {
    Product<kExact> sum;
    sum.template add<Along::tile, Along::tile>(
        c.n, [&](int j, int i) { return P[i * kSquareRow + j]; }, [&](int i, int y) { return dO(i, y0 + y); },
        stage);
    if (later)
      sum.template add<Along::terms, Along::tile>(
          static_cast<int>(rows), [&](int j, int f) { return kept.to_end[j] * monomial(a, K, j, f); },
          [&](int f, int y) { return dS(f, y0 + y); }, stage);
    sum.each([&](int j, int y, float value) {
      if (j < c.n && y0 + y < a.width_v) dv[(c.first + j) * a.width_v + y0 + y] = value;
    });
  }
}

}  // namespace

void write_states(const LinearAttention& a, int64_t sequences, bool tf32, bool queries, const float* x,
                  const float* y, const float* keep, float* states, float* whole, void* stream) {
  const int64_t rows = state_rows(a);
  const int64_t blocks = sequences * running_chunks(a.tokens) * tiles(rows) * tiles(a.width_v);
  launch_running(tf32 ? write_states_kernel<false> : write_states_kernel<true>, blocks, kStage + 2 * kC,
                 stream, "write_states", a, rows, queries, x, y, keep, states, whole);
}

void scan_states(int64_t sequences, int64_t chunks, int64_t size, bool backward, const float* whole,
                 float* states, void* stream) {
  launch_running(scan_states_kernel, (sequences * size + kRunningThreads - 1) / kRunningThreads, 0, stream,
                 "scan_states", sequences, chunks, size, backward, whole, states);
}

void running_outputs(const LinearAttention& a, int64_t sequences, bool tf32, const float* q, const float* k,
                     const float* v, const float* keep, const float* states, float* out, void* stream) {
  launch_running(tf32 ? outputs_kernel<false> : outputs_kernel<true>, sequences * running_chunks(a.tokens),
                 kStage + kSquare + KeptInChunk::kFloats, stream, "running_outputs", a, state_rows(a), q, k,
                 v, keep, states, out);
}

int64_t linear_attention_workspace(const LinearAttention& a, int64_t sequences, bool backward) {
  const int64_t chunks = sequences * running_chunks(a.tokens);
  if (a.tokens <= kC) return chunks;
  return chunks + (backward ? 2 : 1) * chunks * state_rows(a) * a.width_v;
}

void linear_attention_forward(const LinearAttention& a, int64_t sequences, bool tf32, const float* q,
                              const float* k, const float* v, const float* keep, float* out, float* work,
                              void* stream) {
  if (sequences == 0) return;
  const int64_t chunks = running_chunks(a.tokens), size = state_rows(a) * a.width_v;
  float *whole = work, *states = work + sequences * chunks;
  if (chunks > 1) {
    write_states(a, sequences, tf32, false, k, v, keep, states, whole, stream);
    scan_states(sequences, chunks, size, false, whole, states, stream);
  }
  running_outputs(a, sequences, tf32, q, k, v, keep, states, out, stream);
}

void linear_attention_backward(const LinearAttention& a, int64_t sequences, bool tf32, const float* q,
                               const float* k, const float* v, const float* keep, const float* dout,
                               float* dq, float* dk, float* dv, float* work, void* stream) {
  if (sequences == 0) return;
  const int64_t chunks = running_chunks(a.tokens), rows = state_rows(a), size = rows * a.width_v;
  float *whole = work, *states = work + sequences * chunks, *dstates = states + sequences * chunks * size;
  if (chunks > 1) {
    write_states(a, sequences, tf32, false, k, v, keep, states, whole, stream);
    scan_states(sequences, chunks, size, false, whole, states, stream);
    write_states(a, sequences, tf32, true, q, dout, keep, dstates, whole, stream);
    scan_states(sequences, chunks, size, true, whole, dstates, stream);
  }
  const int64_t spread = a.degree > 0 && chunks > 1 ? kRunningThreads * a.width_qk + kSquare : 0;
  launch_running(tf32 ? gradients_kernel<false> : gradients_kernel<true>, sequences * chunks,
                 kStage + 2 * kSquare + KeptInChunk::kFloats + spread, stream, "linear_attention_backward", a,
                 rows, q, k, v, keep, dout, states, dstates, dq, dk, dv);
}

}  // namespace rankscope::cuda
