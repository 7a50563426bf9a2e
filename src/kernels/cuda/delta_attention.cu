// The delta rule by chunks (kernels/cpu/simd/delta_attention.cpp has the formulas). Every chunk alone inverts
// its triangular system, so that from chunk to chunk only
//   U = own - W S,  S <- kept S + K^T diag(D) U,   W = (1 + M)^-1 diag(b before) K,  own = (1 + M)^-1 diag(b)
//   V
// is left to do in order (delta_states.cu); then every chunk alone again. The way back likewise,
//   dU = own + diag(D) K dS,  dS <- kept dS + (before Q)^T dout - W^T dU.
#include "kernels/cuda/delta_states.h"
#include "kernels/cuda/running.cuh"
#include "kernels/cuda/running_attention.h"
#include "kernels/cuda/triangular.cuh"

namespace rankscope::cuda {
namespace {

constexpr int64_t kSquareWidth = padded_width(kC), kSquareRow = padded_row(kC);

// Rows of a chunk's inverse; one chunk may be short.
__device__ __host__ __forceinline__ int64_t side_of(int64_t tokens) { return tokens < kC ? tokens : kC; }

// Numbers in the states between chunks: none where there is one chunk.
int64_t states_of(const DeltaAttention& a, int64_t sequences) {
  return a.tokens <= kC ? 0 : sequences * running_chunks(a.tokens) * a.width_qk * a.width_v;
}

// What the way forth leaves: one piece of memory. W and K, times what is kept to the chunk's end, are whole
// chunks of a padded width.
struct Saved {
  float *W, *K, *inverse, *U, *states, *whole;
  int64_t width, row, floats = 0;  // the padded width, and from row to row

  Saved(const DeltaAttention& a, int64_t sequences, float* at)
      : width(padded_width(a.width_qk)), row(padded_row(a.width_qk)) {
    const int64_t chunks = sequences * running_chunks(a.tokens), side = side_of(a.tokens);
    const int64_t padded = a.tokens <= kC ? 0 : chunks * kC * row;
    const auto take = [&](int64_t count) {
      float* from = at + floats;
      floats += count;
      return from;
    };
    W = take(padded);
    K = take(padded);
    inverse = take(chunks * side * side);
    U = take(sequences * a.tokens * a.width_v);
    states = take(states_of(a, sequences));
    whole = take(chunks);
  }
  DeltaStates running(const DeltaAttention& a, int64_t sequences) const {
    return {sequences, a.tokens, a.width_qk, a.width_v, W, K, whole, U, states};
  }
};

template <bool kExact, bool kSquare>
__global__ __launch_bounds__(kRunningThreads, 3) void prepare_kernel(DeltaAttention a, DeltaInputs<float> in,
                                                                     Saved to) {
  let_next_start();
  const Chunk<kSquare> c(blockIdx.x, a.tokens);
  const int d = c.width(a.width_qk), e = c.width(a.width_v);
  const int thread = static_cast<int>(threadIdx.x);
  const PlainRows K = c.rows(in.k, d), V = c.rows(in.v, e);
  Slot ks(0), vs(1), ms(2), ts(3);
  request(Wanted{ks, K, 0, 0});
  request(Wanted{vs, V, 0, 0});
  const KeptInChunk kept(c, in.keep, running_shared + 4 * kTile);
  float* write = kept.keep + kC;
  if (thread < kC) {
    write[thread] = thread < c.n ? in.write[c.first + thread] : 0.0f;
    if (thread == 0) to.whole[c.state(1)] = kept.whole();
  }
  arrived<kExact, 1>(Wanted{ks, K, 0, 0});
  Product<kExact> same;
  for (int x0 = 0; x0 < d; x0 += kC) {
    fetch<kExact>(Wanted{ks, K, 0, x0});
    same.template add<false, true>(ks.tile, ks.tile, up_to_eight(d - x0));
  }
  float *M = ms.own(), *T = ts.own();
  kept.between(T);
  same.each(
      [&](int i, int j, float& value) { M[place(i, j)] = j < i ? write[i] * T[place(i, j)] * value : 0.0f; });
  __syncthreads();
  invert_triangle(M, T);
  const int side = kSquare ? kC : static_cast<int>(side_of(a.tokens));
  float* inverse = to.inverse + c.state(side * side);
  arrived<kExact, 0>(Wanted{vs, V, 0, 0});
  each_four(kC, [&](int at, int row, int column) {
    auto* four = reinterpret_cast<float4*>(T + at);
    const float x[4] = {four->x, four->y, four->z, four->w};
    if (side == kC)
      *reinterpret_cast<float4*>(inverse + row * kC + column) = *four;
    else
      for (int i = 0; i < 4; ++i)
        if (row < side && column + i < side) inverse[row * side + column + i] = x[i];
    *four = {as_factor<kExact>(x[0]), as_factor<kExact>(x[1]), as_factor<kExact>(x[2]),
             as_factor<kExact>(x[3])};
  });
  if (c.chunks > 1) {
    const int width = static_cast<int>(kSquare ? kSquareWidth : to.width),
              stride = static_cast<int>(kSquare ? kSquareRow : to.row);
    const int64_t first = c.state(1) * kC * stride;
    for (int x0 = 0; x0 < width; x0 += kC) {
      fetch<kExact>(Wanted{ks, K, 0, x0});
      const int columns = width - x0 < kC ? width - x0 : kC;
      float* tile = ks.own();
      each_four(columns, [&](int at, int row, int column) {
        auto* four = reinterpret_cast<float4*>(tile + at);
        const float by = kept.to_end[row], in = write[row] * kept.before[row];
        float x[4] = {four->x, four->y, four->z, four->w};
        for (int i = 0; i < 4; ++i)
          if (x0 + column + i >= d) x[i] = 0;
        const auto times = [&](float weight) {
          return float4{as_factor<kExact>(weight * x[0]), as_factor<kExact>(weight * x[1]),
                        as_factor<kExact>(weight * x[2]), as_factor<kExact>(weight * x[3])};
        };
        *reinterpret_cast<float4*>(to.K + first + row * stride + x0 + column) = times(by);
        *four = times(in);
      });
      __syncthreads();
      Product<kExact> sum;
      sum.template add<false, false>(T, ks.tile, c.depth(), kC, up_to_eight(d - x0));
      sum.each([&](int, int x, float& value) { value = x0 + x < d ? as_factor<kExact>(value) : 0.0f; });
      sum.store(OutRows(to.W + first, kC, stride, kSquare), 0, x0);
    }
  }
  for (int y0 = 0; y0 < e; y0 += kC) {
    fetch<kExact>(Wanted{vs, V, 0, y0});
    float* tile = vs.own();
    each_four(up_to_eight(e - y0), [&](int at, int row, int) {
      auto* four = reinterpret_cast<float4*>(tile + at);
      *four = {as_factor<kExact>(write[row] * four->x), as_factor<kExact>(write[row] * four->y),
               as_factor<kExact>(write[row] * four->z), as_factor<kExact>(write[row] * four->w)};
    });
    __syncthreads();
    Product<kExact> sum;
    sum.template add<false, false>(T, vs.tile, c.depth(), kC, up_to_eight(e - y0));
    sum.store(c.out(to.U, e), 0, y0);
  }
}

// du = P^T dout: what each chunk's outputs ask of its own writes.
template <bool kExact, bool kSquare>
__global__ __launch_bounds__(kRunningThreads, 3) void local_kernel(DeltaAttention a, DeltaInputs<float> in,
                                                                   const float* dout, float* du) {
  const Chunk<kSquare> c(blockIdx.x, a.tokens);
  const int d = c.width(a.width_qk), e = c.width(a.width_v);
  const PlainRows Q = c.rows(in.q, d), K = c.rows(in.k, d), dO = c.rows(dout, e);
  Slot qs(0), ks(1), os(2);
  request(Wanted{qs, Q, 0, 0}, Wanted{ks, K, 0, 0});
  request(Wanted{os, dO, 0, 0});
  const KeptInChunk kept(c, in.keep, running_shared + 3 * kTile);
  arrived<kExact, 1>(Wanted{qs, Q, 0, 0}, Wanted{ks, K, 0, 0});
  Product<kExact> s;
  for (int x0 = 0; x0 < d; x0 += kC) {
    fetch<kExact>(Wanted{qs, Q, 0, x0}, Wanted{ks, K, 0, x0});
    s.template add<false, true>(qs.tile, ks.tile, up_to_eight(d - x0));
  }
  arrived<kExact, 0>(Wanted{os, dO, 0, 0});
  float* P = ks.own();
  kept.between(P);
  s.each([&](int i, int j, float& value) { P[place(i, j)] = as_factor<kExact>(P[place(i, j)] * value); });
  __syncthreads();
  for (int y0 = 0; y0 < e; y0 += kC) {
    fetch<kExact>(Wanted{os, dO, 0, y0});
    Product<kExact> sum;
    sum.template add<true, false>(P, os.tile, c.depth(), kC, up_to_eight(e - y0));
    sum.store(c.out(du, e), 0, y0);
  }
}

// What a token has one of, and sums over rows in two halves.
struct TokenSums {
  float *write, *minus, *part, *with_v, *with_q, *with_k, *with_ends, *with_same;
  static constexpr int kFloats = 13 * kC;
  __device__ explicit TokenSums(float* at)
      : write(at),
        minus(write + kC),
        part(minus + kC),
        with_v(part + kC),
        with_q(with_v + 2 * kC),
        with_k(with_q + 2 * kC),
        with_ends(with_k + 2 * kC),
        with_same(with_ends + 2 * kC) {}
  static __device__ float both(const float* sums, int i) { return sums[i] + sums[kC + i]; }
};

// Gradients of what each token keeps. G(i', j) = G(i', i) keep_i G(i - 1, j) for j < i <= i', so that
//   dkeep_i = sum_{j < i} G(i - 1, j) (G^T dG)(i, j) + before_{i-1} (sum_{i' >= i} G(i', i) r_i' + to_end_i
//   s),
// with r what the rows of `before` get and s the state's own. The block calls it together.
template <bool kExact, bool kSquare>
__device__ void keep_gradients(const Chunk<kSquare>& c, const KeptInChunk<kSquare>& kept,
                               const TokenSums& sums, const float* G, const float* dG, float both,
                               float* to) {
  const int thread = static_cast<int>(threadIdx.x);
  both = warp_sum(both);
  __syncthreads();
  if (thread % 32 == 0) sums.part[thread / 32] = both;
  if (thread < 2 * kC) sums.with_v[thread] = 0;
  __syncthreads();
  Product<kExact> sum;
  sum.template add<true, false>(G, dG, c.depth());
  sum.add_row_sums([&](int i, int j) { return j < i ? G[place(i - 1, j)] : 0.0f; }, sums.with_v);
  __syncthreads();
  if (thread >= c.n) return;
  float state = 0, rest = 0;
  for (int w = 0; w < kRunningThreads / 32; ++w) state += sums.part[w];
#pragma unroll 8
  for (int i = thread; i < c.n; ++i)
    rest += G[place(i, thread)] *
            (TokenSums::both(sums.with_q, i) - sums.write[i] * TokenSums::both(sums.with_k, i));
  to[c.first + thread] = TokenSums::both(sums.with_v, thread) +
                         (thread > 0 ? kept.before[thread - 1] : 1.0f) * (rest + kept.to_end[thread] * state);
}

// This thread's share of the sum of two matrices' products, number by number; kWide: in fours.
template <bool kWide>
__device__ __forceinline__ float own_share_of_dot(const PlainRows& x, const PlainRows& y) {
  using Four = std::conditional_t<kWide, float4, float>;
  constexpr int kMany = sizeof(Four) / sizeof(float);
  const auto *a = reinterpret_cast<const Four*>(x.data), *b = reinterpret_cast<const Four*>(y.data);
  float sum = 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(x.rows * x.columns) / kMany;
       i += kRunningThreads) {
    if constexpr (kWide)
      sum += a[i].x * b[i].x + a[i].y * b[i].y + a[i].z * b[i].z + a[i].w * b[i].w;
    else
      sum += a[i] * b[i];
  }
  return sum;
}

template <bool kExact, bool kSquare>
__global__ __launch_bounds__(kRunningThreads, 2) void delta_gradients_kernel(DeltaAttention a,
                                                                             DeltaInputs<float> in,
                                                                             const float* dout, Saved from,
                                                                             const float* dstates, float* du,
                                                                             DeltaGradients<float> to) {
  const Chunk<kSquare> c(blockIdx.x, a.tokens);
  const int thread = static_cast<int>(threadIdx.x);
  const int d = c.width(a.width_qk), e = c.width(a.width_v);
  const int side = kSquare ? kC : static_cast<int>(side_of(a.tokens));
  const bool earlier = c.chunk > 0, later = c.chunk + 1 < c.chunks;
  const PlainRows Q = c.rows(in.q, d), K = c.rows(in.k, d), V = c.rows(in.v, e), dO = c.rows(dout, e),
                  U = c.rows(from.U, e), dR = c.rows(du, e);  // dU, until it is solved for
  const PlainRows T(from.inverse + c.state(side * side), side, side, kSquare);
  const PlainRows S = c.state(from.states, earlier, d, e), dS = c.state(dstates, later, d, e);
  Slot qs(0), ks(1), os(2), us(3), rs(4), xs(5);
  request(Wanted{rs, dR, 0, 0}, Wanted{xs, T, 0, 0});
  request(Wanted{qs, Q, 0, 0}, Wanted{ks, K, 0, 0}, Wanted{os, dO, 0, 0}, Wanted{us, U, 0, 0});
  const KeptInChunk kept(c, in.keep, running_shared + 6 * kTile);
  const TokenSums sums(kept.keep + kC);
  if (thread < kC) {
    sums.write[thread] = thread < c.n ? in.write[c.first + thread] : 0.0f;
    sums.minus[thread] = -sums.write[thread] * kept.before[thread];
  }
  for (int i = thread; i < 10 * kC; i += kRunningThreads) sums.with_v[i] = 0;
  arrived<kExact, 1>(Wanted{rs, dR, 0, 0}, Wanted{xs, T, 0, 0});

  for (int y0 = 0; y0 < e; y0 += kC) {  // dR = (1 + M)^-T dU
    fetch<kExact>(Wanted{rs, dR, 0, y0});
    Product<kExact> sum;
    sum.template add<true, false>(xs.tile, rs.tile, c.depth(), kC, up_to_eight(e - y0));
    sum.add_row_sums([&](int j, int y) { return y0 + y < e ? V(j, y0 + y) : 0.0f; }, sums.with_v);
    if (e > kC) sum.store(c.out(du, e), 0, y0);
    __syncthreads();
    if (e > kC)
      rs.own();
    else
      sum.each([&](int j, int y, float& value) {
        rs.tile[place(j, y)] = j < c.n && y < e ? as_factor<kExact>(value) : 0.0f;
      });
    sum.scale(sums.write);
    sum.store(c.out(to.v, e), 0, y0);
  }
  arrived<kExact, 0>(Wanted{qs, Q, 0, 0}, Wanted{ks, K, 0, 0}, Wanted{os, dO, 0, 0}, Wanted{us, U, 0, 0});

  // Through the states: rows of y times the state's rows. Their products with x are summed up, then they are
  // weighted.
  const auto through_state = [&](Slot& ys, const PlainRows& y, const PlainRows& state, Slot& x, int x0,
                                 float* with, const float* weight) {
    Product<kExact> raw;
    for (int y0 = 0; y0 < e; y0 += kC) {
      fetch<kExact>(Wanted{ys, y, 0, y0}, Wanted{xs, state, x0, y0});
      raw.template add<false, true>(ys.tile, xs.tile, up_to_eight(e - y0), kC, up_to_eight(d - x0));
    }
    raw.add_row_sums([&](int i, int f) { return x0 + f < d ? x.tile[place(i, f)] : 0.0f; }, with);
    raw.scale(weight);
    return raw;
  };
  for (int x0 = 0; x0 < d; x0 += kC) {
    fetch<kExact>(Wanted{qs, Q, 0, x0}, Wanted{ks, K, 0, x0});
    Product<kExact> q, k;
    if (earlier) {
      q = through_state(os, dO, S, qs, x0, sums.with_q, kept.before);
      k = through_state(rs, dR, S, ks, x0, sums.with_k, sums.minus);
    }
    q.store(c.out(to.q, d), 0, x0);
    if (later) k.plus(through_state(us, U, dS, ks, x0, sums.with_ends, kept.to_end));
    k.store(c.out(to.k, d), 0, x0);
  }

  Product<kExact> dp, dm, scores, same;
  for (int y0 = 0; y0 < e; y0 += kC) {
    fetch<kExact>(Wanted{os, dO, 0, y0}, Wanted{us, U, 0, y0});
    dp.template add<false, true>(os.tile, us.tile, up_to_eight(e - y0));
  }
  dp.settle();
  for (int y0 = 0; y0 < e; y0 += kC) {
    fetch<kExact>(Wanted{rs, dR, 0, y0}, Wanted{us, U, 0, y0});
    dm.template add<false, true>(rs.tile, us.tile, up_to_eight(e - y0));
  }
  dm.settle();
  for (int x0 = 0; x0 < d; x0 += kC) {
    fetch<kExact>(Wanted{qs, Q, 0, x0}, Wanted{ks, K, 0, x0});
    scores.template add<false, true>(qs.tile, ks.tile, up_to_eight(d - x0));
  }
  scores.settle();
  for (int x0 = 0; x0 < d; x0 += kC) {
    fetch<kExact>(Wanted{ks, K, 0, x0});
    same.template add<false, true>(ks.tile, ks.tile, up_to_eight(d - x0));
  }
  same.settle();
  __syncthreads();  // every tile of the products above is read
  float *G = xs.own(), *dG = os.own(), *ds = us.own(), *dA = rs.own();
  kept.between(G);
  {
    const WarpPlace w;
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int at = 0; at < 4; ++at) {
        const int i = w.row + w.g + 8 * (at >> 1), j = w.column + 8 * n + 2 * w.t + (at & 1);
        const bool below = j < i && i < c.n;
        const float g = G[place(i, j)], p = dp.big[n][at], m = dm.big[n][at], k = same.big[n][at];
        const float g_ij = p * scores.big[n][at] - m * sums.write[i] * k;
        const float end = i == c.n - 1 ? TokenSums::both(sums.with_ends, j) : 0.0f;
        dG[place(i, j)] = below ? as_factor<kExact>(g_ij + end) : 0.0f;
        G[place(i, j)] = as_factor<kExact>(g);
        ds[place(i, j)] = as_factor<kExact>(g * p);
        // A gradient of K K^T reaches K from both sides.
        if (j <= i)
          dA[place(i, j)] = dA[place(j, i)] = below ? as_factor<kExact>(-sums.write[i] * g * m) : 0.0f;
        same.big[n][at] = below ? m * g * k : 0.0f;
      }
  }
  same.add_row_sums([](int, int) { return 1.0f; }, sums.with_same);
  __syncthreads();
  if (thread < c.n)
    to.write[c.first + thread] = TokenSums::both(sums.with_v, thread) -
                                 kept.before[thread] * TokenSums::both(sums.with_k, thread) -
                                 TokenSums::both(sums.with_same, thread);

  for (int x0 = 0; x0 < d; x0 += kC) {
    const int columns = up_to_eight(d - x0);
    fetch<kExact>(Wanted{qs, Q, 0, x0}, Wanted{ks, K, 0, x0});
    Product<kExact> q, k;
    q.add_stored(c.out(to.q, d), 0, x0);
    k.add_stored(c.out(to.k, d), 0, x0);
    q.template add<false, false>(ds, ks.tile, c.depth(), kC, columns);
    q.store(c.out(to.q, d), 0, x0);
    k.template add<true, false>(ds, qs.tile, c.depth(), kC, columns);
    k.template add<false, false>(dA, ks.tile, c.depth(), kC, columns);
    k.store(c.out(to.k, d), 0, x0);
  }
  if (to.keep == nullptr) return;
  const float both = earlier && later ? own_share_of_dot<kSquare>(S, dS) : 0.0f;
  keep_gradients<kExact>(c, kept, sums, G, dG, both, to.keep);
}

LinearAttention linear_of(const DeltaAttention& a) { return {a.tokens, a.width_qk, a.width_v}; }

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
  const bool square = square_heads(a, in.q, in.k, in.v, out, saved);
  for_kind(tf32, square, [&](auto exact, auto squared) {
    launch_running(prepare_kernel<exact, squared>, chunks, 4, kKeptFloats + kC, stream,
                   "delta_attention_prepare", Start::kInOrder, a, in, s);
  });
  if (a.tokens > kC) delta_states_forward(s.running(a, sequences), tf32, stream);
  running_outputs(linear_of(a), sequences, tf32, in.q, in.k, s.U, in.keep, s.states, out, Start::kEarly,
                  stream);
}

void delta_attention_backward(const DeltaAttention& a, int64_t sequences, bool tf32,
                              const DeltaInputs<float>& in, const float* saved, const float* dout,
                              const DeltaGradients<float>& d, float* work, void* stream) {
  if (sequences == 0) return;
  const Saved s(a, sequences, const_cast<float*>(saved));  // read only
  const int64_t chunks = sequences * running_chunks(a.tokens);
  float *du = work, *dstates = du + sequences * a.tokens * a.width_v,
        *whole = dstates + states_of(a, sequences);
  const bool square = square_heads(a, in.q, in.k, in.v, saved, dout, d.q, d.k, d.v, work);
  for_kind(tf32, square, [&](auto exact, auto squared) {
    launch_running(local_kernel<exact, squared>, chunks, 3, kKeptFloats, stream, "delta_attention_local",
                   Start::kInOrder, a, in, dout, du);
  });
  if (a.tokens > kC) {
    write_states(linear_of(a), sequences, tf32, true, in.q, dout, in.keep, dstates, whole, stream);
    DeltaStates running = s.running(a, sequences);
    running.u = du;
    running.states = dstates;
    delta_states_backward(running, tf32, stream);
  }
  for_kind(tf32, square, [&](auto exact, auto squared) {
    launch_running(delta_gradients_kernel<exact, squared>, chunks, 6, kKeptFloats + TokenSums::kFloats,
                   stream, "delta_attention_backward", Start::kInOrder, a, in, dout, s, dstates, du, d);
  });
}

}  // namespace rankscope::cuda
