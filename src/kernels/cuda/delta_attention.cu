// The delta rule by chunks (kernels/cpu/simd/delta_attention.cpp has the formulas). Every chunk alone inverts
// its triangular system, so that from chunk to chunk only
//   U = own - W S,  S <- kept S + K^T diag(D) U,   W = (1 + M)^-1 diag(b before) K,  own = (1 + M)^-1 diag(b)
//   V
// is left to do in order, 16 columns of the state a block; then every chunk alone again. The way back
// likewise,
//   dU = own + diag(D) K dS,  dS <- kept dS + (before Q)^T dout - W^T dU.
#include "kernels/cuda/running.cuh"
#include "kernels/cuda/running_attention.h"

namespace rankscope::cuda {
namespace {

constexpr int kSlice = 16;             // columns of a state that one block carries along
constexpr int kSliceRow = kSlice + 1;  // of tokens times columns in shared memory
constexpr int kOwned = static_cast<int>(kMaxRunningWidth) * kSlice / kRunningThreads;  // of a state, a thread

// Rows of a chunk's inverse; one chunk may be short.
__device__ __host__ __forceinline__ int64_t side_of(int64_t tokens) { return tokens < kC ? tokens : kC; }

// Numbers in the states between chunks: none where there is one chunk.
int64_t states_of(const DeltaAttention& a, int64_t sequences) {
  return a.tokens <= kC ? 0 : sequences * running_chunks(a.tokens) * a.width_qk * a.width_v;
}

// What the way forth leaves: one piece of memory.
struct Saved {
  float *inverse, *W, *U, *states, *whole, *ends;
  int64_t floats;

  Saved(const DeltaAttention& a, int64_t sequences, float* at) {
    const int64_t chunks = sequences * running_chunks(a.tokens), tokens = sequences * a.tokens;
    const int64_t side = side_of(a.tokens);
    const auto take = [&](int64_t count) {
      float* from = at + floats;
      floats += count;
      return from;
    };
    floats = 0;
    inverse = take(chunks * side * side);
    W = take(tokens * a.width_qk);
    U = take(tokens * a.width_v);
    states = take(states_of(a, sequences));
    whole = take(chunks);
    ends = take(tokens);
  }
};

template <bool kExact>
__global__ __launch_bounds__(kRunningThreads) void prepare_kernel(DeltaAttention a, DeltaInputs<float> in,
                                                                  float* inverse, float* W, float* U,
                                                                  float* whole, float* ends) {
  const Chunk c(blockIdx.x, a.tokens);
  float *stage = running_shared, *M = stage + kStage, *T = M + kSquare, *write = T + kSquare;
  const KeptInChunk kept(c, in.keep, write + kC);
  const ChunkRows K(c, in.k, a.width_qk), V(c, in.v, a.width_v);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kC) {
    write[thread] = thread < c.n ? in.write[c.first + thread] : 0.0f;
    if (thread < c.n) ends[c.first + thread] = kept.to_end[thread];
    if (thread == 0) whole[c.state(1)] = kept.before[c.n - 1];
  }
  __syncthreads();
  {
    Product<kExact> same;
    same.template add<Along::terms, Along::terms>(
        static_cast<int>(a.width_qk), [&](int i, int x) { return K(i, x); },
        [&](int x, int j) { return K(j, x); }, stage);
    same.each([&](int i, int j, float value) {
      M[i * kSquareRow + j] = j < i ? write[i] * kept.between(i, j) * value : 0.0f;
    });
  }
  __syncthreads();
  if (thread < kC)
    for (int i = 0; i < kC; ++i) {  // a column of the inverse each, from the diagonal down
      float x = i == thread ? 1.0f : 0.0f;
      for (int l = thread; l < i; ++l) x -= M[i * kSquareRow + l] * T[l * kSquareRow + thread];
      T[i * kSquareRow + thread] = x;
    }
  __syncthreads();
  const int side = static_cast<int>(side_of(a.tokens));
  for (int i = thread; i < side * side; i += kRunningThreads)
    inverse[c.state(side * side) + i] = T[i / side * kSquareRow + i % side];
  const auto from = [&](int i, int j) { return T[i * kSquareRow + j]; };
  for (int x0 = 0; x0 < a.width_qk; x0 += kC) {
    Product<kExact> sum;
    sum.template add<Along::terms, Along::tile>(
        c.n, from, [&](int j, int x) { return write[j] * kept.before[j] * K(j, x0 + x); }, stage);
    sum.each([&](int i, int x, float value) {
      if (i < c.n && x0 + x < a.width_qk) W[(c.first + i) * a.width_qk + x0 + x] = value;
    });
  }
  for (int y0 = 0; y0 < a.width_v; y0 += kC) {
    Product<kExact> sum;
    sum.template add<Along::terms, Along::tile>(
        c.n, from, [&](int j, int y) { return write[j] * V(j, y0 + y); }, stage);
    sum.each([&](int i, int y, float value) {
      if (i < c.n && y0 + y < a.width_v) U[(c.first + i) * a.width_v + y0 + y] = value;
    });
  }
}

// A block's columns of a state as it runs, and the rows of two matrices of the chunk at hand.
struct Slice {
  int64_t sequence, chunks;
  int y0, d, e;
  float *S, *W, *K, *U;

  __device__ explicit Slice(const DeltaAttention& a) {
    const int64_t slices = (a.width_v + kSlice - 1) / kSlice;
    sequence = blockIdx.x / slices;
    chunks = (a.tokens + kC - 1) / kC;
    y0 = static_cast<int>(blockIdx.x % slices) * kSlice;
    d = static_cast<int>(a.width_qk), e = static_cast<int>(a.width_v);
    S = running_shared, W = S + d * kSlice, K = W + kC * (d + 1), U = K + kC * (d + 1);
    for (int i = static_cast<int>(threadIdx.x); i < d * kSlice; i += kRunningThreads) S[i] = 0;
  }
  static int64_t floats(const DeltaAttention& a) {
    return a.width_qk * kSlice + 2 * kC * (a.width_qk + 1) + kC * kSliceRow;
  }
  __device__ void load(const Chunk& c, const float* w, const float* k, const float* ends) const {
    for (int i = static_cast<int>(threadIdx.x); i < kC * d; i += kRunningThreads) {
      const int token = i / d, x = i % d;
      const bool there = token < c.n;
      const int64_t at = (c.first + token) * d + x;
      W[token * (d + 1) + x] = there ? w[at] : 0.0f;
      K[token * (d + 1) + x] = there ? k[at] * ends[c.first + token] : 0.0f;
    }
  }
  /// u [64, 16] of the chunk += sign * rows S, to global memory and to shared.
  __device__ void add_read(const Chunk& c, const float* rows, float sign, float* u) const {
    const int thread = static_cast<int>(threadIdx.x), token = thread / 4, first = thread % 4 * 4;
    float sum[4] = {0, 0, 0, 0};
    for (int x = 0; x < d; ++x) {
      const float w = rows[token * (d + 1) + x];
#pragma unroll
      for (int y = 0; y < 4; ++y) sum[y] += w * S[x * kSlice + first + y];
    }
#pragma unroll
    for (int y = 0; y < 4; ++y) {
      const int column = y0 + first + y;
      float value = 0;
      if (token < c.n && column < e) {
        float* to = u + (c.first + token) * e + column;
        value = *to += sign * sum[y];
      }
      U[token * kSliceRow + first + y] = value;
    }
  }
  /// sum over the tokens of rows(token, x) U(token, y), of element i = (x, y).
  __device__ float written(const float* rows, int i) const {
    float sum = 0;
    for (int token = 0; token < kC; ++token)
      sum += rows[token * (d + 1) + i / kSlice] * U[token * kSliceRow + i % kSlice];
    return sum;
  }
};

__global__ __launch_bounds__(kRunningThreads) void states_kernel(DeltaAttention a, const float* k,
                                                                 const float* ends, const float* w,
                                                                 const float* whole, float* u,
                                                                 float* states) {
  const Slice s(a);
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t chunk = 0; chunk < s.chunks; ++chunk) {
    const Chunk c(s.sequence * s.chunks + chunk, a.tokens);
    s.load(c, w, k, ends);
    __syncthreads();
    for (int i = thread; i < s.d * kSlice; i += kRunningThreads)
      if (s.y0 + i % kSlice < s.e)
        states[c.state(a.width_qk * a.width_v) + i / kSlice * s.e + s.y0 + i % kSlice] = s.S[i];
    s.add_read(c, s.W, -1.0f, u);
    __syncthreads();
    const float kept = whole[c.state(1)];
    for (int i = thread; i < s.d * kSlice; i += kRunningThreads) s.S[i] = kept * s.S[i] + s.written(s.K, i);
    __syncthreads();
  }
}

// dstates holds (before Q)^T dout of each chunk, and then the gradient of the state behind it.
__global__ __launch_bounds__(kRunningThreads) void states_back_kernel(DeltaAttention a, const float* k,
                                                                      const float* ends, const float* w,
                                                                      const float* whole, float* du,
                                                                      float* dstates) {
  const Slice s(a);
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t chunk = s.chunks - 1; chunk >= 0; --chunk) {
    const Chunk c(s.sequence * s.chunks + chunk, a.tokens);
    s.load(c, w, k, ends);
    __syncthreads();
    float added[kOwned];
#pragma unroll
    for (int part = 0; part < kOwned; ++part) {
      const int i = thread + part * kRunningThreads;
      added[part] = 0;
      if (i >= s.d * kSlice || s.y0 + i % kSlice >= s.e) continue;
      float* at = dstates + c.state(a.width_qk * a.width_v) + i / kSlice * s.e + s.y0 + i % kSlice;
      added[part] = *at;
      *at = s.S[i];
    }
    s.add_read(c, s.K, 1.0f, du);
    __syncthreads();
    const float kept = whole[c.state(1)];
#pragma unroll
    for (int part = 0; part < kOwned; ++part) {
      const int i = thread + part * kRunningThreads;
      if (i < s.d * kSlice) s.S[i] = kept * s.S[i] + added[part] - s.written(s.W, i);
    }
    __syncthreads();
  }
}

// du = P^T dout: what each chunk's outputs ask of its own writes.
template <bool kExact>
__global__ __launch_bounds__(kRunningThreads) void local_kernel(DeltaAttention a, DeltaInputs<float> in,
                                                                const float* dout, float* du) {
  const Chunk c(blockIdx.x, a.tokens);
  float *stage = running_shared, *P = stage + kStage;
  const KeptInChunk kept(c, in.keep, P + kSquare);
  const ChunkRows Q(c, in.q, a.width_qk), K(c, in.k, a.width_qk), dO(c, dout, a.width_v);
  {
    Product<kExact> s;
    s.template add<Along::terms, Along::terms>(
        static_cast<int>(a.width_qk), [&](int i, int x) { return Q(i, x); },
        [&](int x, int j) { return K(j, x); }, stage);
    s.each([&](int i, int j, float value) { P[i * kSquareRow + j] = kept.between(i, j) * value; });
  }
  __syncthreads();
  for (int y0 = 0; y0 < a.width_v; y0 += kC) {
    Product<kExact> sum;
    sum.template add<Along::tile, Along::tile>(
        c.n, [&](int j, int i) { return P[i * kSquareRow + j]; }, [&](int i, int y) { return dO(i, y0 + y); },
        stage);
    sum.each([&](int j, int y, float value) {
      if (j < c.n && y0 + y < a.width_v) du[(c.first + j) * a.width_v + y0 + y] = value;
    });
  }
}

// Row sums in two halves, and what else a token has one of.
constexpr int kVectors = 10 * kC;

template <bool kExact>
__global__ __launch_bounds__(kRunningThreads) void delta_gradients_kernel(
    DeltaAttention a, DeltaInputs<float> in, const float* dout, const float* inverse, const float* u,
    const float* states, const float* dstates, float* du, DeltaGradients<float> to) {
  const Chunk c(blockIdx.x, a.tokens);
  const int thread = static_cast<int>(threadIdx.x);
  const int d = static_cast<int>(a.width_qk), e = static_cast<int>(a.width_v);
  float *stage = running_shared, *dG = stage + kStage, *ds = dG + kSquare, *A = ds + kSquare,
        *dA = A + kSquare, *write = dA + kSquare, *part = write + kC, *with_v = part + kC,
        *with_q = with_v + 2 * kC, *with_k = with_q + 2 * kC, *with_ends = with_k + 2 * kC;
  const KeptInChunk kept(c, in.keep, write + kVectors);
  const ChunkRows Q(c, in.q, d), K(c, in.k, d), V(c, in.v, e), dO(c, dout, e), U(c, u, e);
  const ChunkRows dR(c, du, e);  // dU, until it is solved for
  const StateMatrix S{states + c.state(a.width_qk * a.width_v), d, e};
  const StateMatrix dS{dstates + c.state(a.width_qk * a.width_v), d, e};
  const int side = static_cast<int>(side_of(a.tokens));
  const float* T = inverse + c.state(side * side);
  const bool earlier = c.chunk > 0, later = c.chunk + 1 < c.chunks;
  if (thread < kC) write[thread] = thread < c.n ? in.write[c.first + thread] : 0.0f;
  for (int i = thread; i < 8 * kC; i += kRunningThreads) with_v[i] = 0;
  __syncthreads();

  for (int y0 = 0; y0 < e; y0 += kC) {  // dR = (1 + M)^-T dU
    Product<kExact> sum;
    sum.template add<Along::tile, Along::tile>(
        c.n, [&](int j, int i) { return i < c.n && j < c.n ? T[i * side + j] : 0.0f; },
        [&](int i, int y) { return dR(i, y0 + y); }, stage);
    sum.each([&](int j, int y, float value) {
      if (j >= c.n || y0 + y >= e) return;
      const int64_t at = (c.first + j) * e + y0 + y;
      du[at] = value;
      to.v[at] = write[j] * value;
    });
    sum.add_row_sums([&](int j, int y) { return V(j, y0 + y); }, with_v);
  }
  __syncthreads();

  const auto square = [&](int depth, const ChunkRows& left, const ChunkRows& right, float* out) {
    Product<kExact> sum;
    sum.template add<Along::terms, Along::terms>(
        depth, [&](int i, int x) { return left(i, x); }, [&](int x, int j) { return right(j, x); }, stage);
    sum.each([&](int i, int j, float value) { out[i * kSquareRow + j] = value; });
  };
  square(d, Q, K, dG);  // scores, and so on, until they have met
  square(e, dO, U, ds);
  square(d, K, K, A);
  square(e, dR, U, dA);
  __syncthreads();
  for (int at = thread; at < kC * kC; at += kRunningThreads) {
    const int i = at / kC, j = at % kC, x = i * kSquareRow + j;
    const float g = kept.between(i, j), scores = dG[x], dp = ds[x], same = A[x], dm = dA[x];
    const bool below = j < i && i < c.n;
    dG[x] = below ? dp * scores - dm * write[i] * same : 0.0f;
    ds[x] = g * dp;
    dA[x] = below ? -write[i] * g * dm : 0.0f;
    A[x] = below ? dm * g * same : 0.0f;
  }
  __syncthreads();

  for (int x0 = 0; x0 < d; x0 += kC) {
    const auto write_out = [&](const Product<kExact>& sum, float* out) {
      sum.each([&](int i, int x, float value) {
        if (i < c.n && x0 + x < d) out[(c.first + i) * d + x0 + x] = value;
      });
    };
    // Rows of y times the state's rows: their products with x are summed up, then they join `out`.
    const auto through_state = [&](const ChunkRows& y, const StateMatrix& state, const ChunkRows& x,
                                   float* sums, auto weight, float* out) {
      Product<kExact> raw;
      raw.template add<Along::terms, Along::terms>(
          e, [&](int i, int at) { return y(i, at); }, [&](int at, int f) { return state(x0 + f, at); },
          stage);
      raw.add_row_sums([&](int i, int f) { return x(i, x0 + f); }, sums);
      raw.each([&](int i, int f, float value) {
        if (i < c.n && x0 + f < d) out[(c.first + i) * d + x0 + f] += weight(i) * value;
      });
    };
    Product<kExact> q, k;
    q.template add<Along::terms, Along::tile>(
        c.n, [&](int i, int j) { return ds[i * kSquareRow + j]; }, [&](int j, int x) { return K(j, x0 + x); },
        stage);
    write_out(q, to.q);
    k.template add<Along::tile, Along::tile>(
        c.n, [&](int j, int i) { return ds[i * kSquareRow + j]; }, [&](int i, int x) { return Q(i, x0 + x); },
        stage);
    k.template add<Along::terms, Along::tile>(
        c.n, [&](int i, int j) { return dA[i * kSquareRow + j] + dA[j * kSquareRow + i]; },
        [&](int j, int x) { return K(j, x0 + x); }, stage);
    write_out(k, to.k);
    if (earlier) {
      through_state(
          dO, S, Q, with_q, [&](int i) { return kept.before[i]; }, to.q);
      through_state(
          dR, S, K, with_k, [&](int i) { return -write[i] * kept.before[i]; }, to.k);
    }
    if (later)
      through_state(
          U, dS, K, with_ends, [&](int i) { return kept.to_end[i]; }, to.k);
  }
  __syncthreads();

  if (thread < c.n) {
    float written = with_v[thread] + with_v[kC + thread];
    written -= kept.before[thread] * (with_k[thread] + with_k[kC + thread]);
    for (int j = 0; j < thread; ++j) written -= A[thread * kSquareRow + j];
    to.write[c.first + thread] = written;
  }
  if (to.keep == nullptr) return;

  // Row i of G is keep_i times row i - 1, and so is `before`: from the last row up.
  float both = 0;
  if (earlier && later)
    for (int i = thread; i < d * e; i += kRunningThreads) both += S.data[i] * dS.data[i];
  both = warp_sum(both);
  __syncthreads();  // nobody reads A any more
  if (thread % 32 == 0) A[thread / 32] = both;
  __syncthreads();
  if (thread < kC) {
    float sum = 0;
    for (int i = c.n - 1; i > thread; --i) {
      float& here = dG[i * kSquareRow + thread];
      sum += here;
      if (i == c.n - 1) sum += with_ends[thread] + with_ends[kC + thread];
      here = sum * kept.between(i - 1, thread);
      sum *= kept.keep[i];
    }
  } else if (thread == kC) {
    float state = 0;
    for (int w = 0; w < kRunningThreads / 32; ++w) state += A[w];
    for (int i = c.n - 1; i >= 0; --i) {
      state += with_q[i] + with_q[kC + i] - write[i] * (with_k[i] + with_k[kC + i]);
      part[i] = state * (i > 0 ? kept.before[i - 1] : 1.0f);
      state *= kept.keep[i];
    }
  }
  __syncthreads();
  if (thread >= c.n) return;
  float sum = part[thread];
  for (int j = 0; j < thread; ++j) sum += dG[thread * kSquareRow + j];
  to.keep[c.first + thread] = sum;
}

LinearAttention linear_of(const DeltaAttention& a) { return {a.tokens, a.width_qk, a.width_v}; }

int64_t slices(const DeltaAttention& a, int64_t sequences) {
  return sequences * ((a.width_v + kSlice - 1) / kSlice);
}

}  // namespace

int64_t delta_attention_saved(const DeltaAttention& a, int64_t sequences) {
  return Saved(a, sequences, nullptr).floats;
}

int64_t delta_attention_workspace(const DeltaAttention& a, int64_t sequences) {
  return sequences * a.tokens * a.width_v + states_of(a, sequences) + sequences * running_chunks(a.tokens);
}

void delta_attention_forward(const DeltaAttention& a, int64_t sequences, bool tf32,
                             const DeltaInputs<float>& in, float* out, float* saved, void* stream) {
  if (sequences == 0) return;
  const Saved s(a, sequences, saved);
  const int64_t chunks = sequences * running_chunks(a.tokens);
  launch_running(tf32 ? prepare_kernel<false> : prepare_kernel<true>, chunks,
                 kStage + 2 * kSquare + kC + KeptInChunk::kFloats, stream, "delta_attention_prepare", a, in,
                 s.inverse, s.W, s.U, s.whole, s.ends);
  if (a.tokens > kC)
    launch_running(states_kernel, slices(a, sequences), Slice::floats(a), stream, "delta_attention_states", a,
                   in.k, s.ends, s.W, s.whole, s.U, s.states);
  running_outputs(linear_of(a), sequences, tf32, in.q, in.k, s.U, in.keep, s.states, out, stream);
}

void delta_attention_backward(const DeltaAttention& a, int64_t sequences, bool tf32,
                              const DeltaInputs<float>& in, const float* saved, const float* dout,
                              const DeltaGradients<float>& d, float* work, void* stream) {
  if (sequences == 0) return;
  const Saved s(a, sequences, const_cast<float*>(saved));  // read only
  const int64_t chunks = sequences * running_chunks(a.tokens);
  float *du = work, *dstates = du + sequences * a.tokens * a.width_v,
        *whole = dstates + states_of(a, sequences);
  launch_running(tf32 ? local_kernel<false> : local_kernel<true>, chunks,
                 kStage + kSquare + KeptInChunk::kFloats, stream, "delta_attention_local", a, in, dout, du);
  if (a.tokens > kC) {
    write_states(linear_of(a), sequences, tf32, true, in.q, dout, in.keep, dstates, whole, stream);
    launch_running(states_back_kernel, slices(a, sequences), Slice::floats(a), stream,
                   "delta_attention_states_back", a, in.k, s.ends, s.W, s.whole, du, dstates);
  }
  launch_running(tf32 ? delta_gradients_kernel<false> : delta_gradients_kernel<true>, chunks,
                 kStage + 4 * kSquare + kVectors + KeptInChunk::kFloats, stream, "delta_attention_backward",
                 a, in, dout, s.inverse, s.U, s.states, dstates, du, d);
}

}  // namespace rankscope::cuda
