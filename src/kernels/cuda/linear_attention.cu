// Linear attention by chunks, all at once: what each chunk writes, a scan over the chunks for the state
// before each, then every chunk alone. On the way back the same twice, once in each direction of time.
#include "kernels/cuda/monomials.cuh"
#include "kernels/cuda/running.cuh"
#include "kernels/cuda/running_attention.h"

namespace rankscope::cuda {
namespace {

__host__ __device__ int tiles_of(int64_t size) { return static_cast<int>((size + kC - 1) / kC); }

template <bool kExact, bool kSquare>
__global__ __launch_bounds__(kRunningThreads) void write_states_kernel(LinearAttention a, int64_t rows,
                                                                       bool queries, const float* x,
                                                                       const float* y, const float* keep,
                                                                       float* states, float* whole) {
  const int each = kSquare ? 1 : tiles_of(a.width_v);
  const Chunk<kSquare> c(blockIdx.x / each, a.tokens);
  const int e = c.width(a.width_v), m = c.width(rows);
  if constexpr (kSquare) a.degree = 0;  // the compiler is told
  const int column0 = static_cast<int>(blockIdx.x % each) * kC;
  const PlainRows X = c.rows(x, c.width(a.width_qk)), Y = c.rows(y, e);
  Slot xs(0), ys(1), phis(2);
  request(Wanted{xs, X, 0, 0}, Wanted{ys, Y, 0, column0});
  const KeptInChunk kept(c, keep, running_shared + (a.degree == 0 ? 2 : 3) * kTile);
  if (column0 == 0 && threadIdx.x == 0) whole[c.state(1)] = kept.whole();
  const float* weight = queries ? kept.before : kept.to_end;
  arrived<kExact, 0>(Wanted{xs, X, 0, 0}, Wanted{ys, Y, 0, column0});
  if (a.degree == 0 && keep != nullptr) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kRunningThreads)
      ys.tile[i] = as_factor<kExact>(ys.tile[i] * weight[i / kC]);  // the place within a row does not matter
    __syncthreads();
  }
  for (int row0 = 0; row0 < m; row0 += kC) {
    const float* from = xs.tile;
    if (a.degree > 0) {
      __syncthreads();  // the tile before is read
      monomial_tile<kExact>(
          a, row0, RowsOf(xs, X), [&](int row) { return weight[row]; }, phis.own());
      from = phis.tile;
    } else {
      fetch<kExact>(Wanted{xs, X, 0, row0});
    }
    Product<kExact> sum;
    sum.template add<true, false>(from, ys.tile, c.depth(), up_to_eight(m - row0), up_to_eight(e - column0));
    sum.store(OutRows(states + c.state(static_cast<int64_t>(m) * e), m, e, kSquare), row0, column0);
  }
}

__global__ __launch_bounds__(kRunningThreads) void scan_states_kernel(int64_t sequences, int64_t chunks,
                                                                      int64_t size, bool backward,
                                                                      const float* whole, float* states) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kRunningThreads + threadIdx.x;
  if (i >= sequences * size) return;
  const int64_t sequence = i / size, first = sequence * chunks + (backward ? chunks - 1 : 0);
  const int64_t way = backward ? -1 : 1, step = way * size;
  float* to = states + first * size + i % size;
  const float *from = to, *kept = whole + first;
  constexpr int kAhead = 16;  // on their way together, and these while those before are written
  float here[2][kAhead], share[2][kAhead], state = 0;
  const auto look = [&](int64_t left, int side) {
#pragma unroll
    for (int s = 0; s < kAhead; ++s, from += step, kept += way)
      if (s < left) here[side][s] = *from, share[side][s] = *kept;
  };
  const auto pass = [&](int64_t left, int side) {
#pragma unroll
    for (int s = 0; s < kAhead; ++s, to += step)
      if (s < left) {
        *to = state;
        state = share[side][s] * state + here[side][s];
      }
  };
  look(chunks, 0);
  for (int64_t left = chunks; left > 0; left -= 2 * kAhead) {
    look(left - kAhead, 1);
    pass(left, 0);
    look(left - 2 * kAhead, 0);
    pass(left - kAhead, 1);
  }
}

template <bool kExact, bool kSquare, bool kEarly>
__global__ __launch_bounds__(kRunningThreads, 3) void outputs_kernel(LinearAttention a, int64_t rows,
                                                                     const float* q, const float* k,
                                                                     const float* v, const float* keep,
                                                                     const float* states, float* out) {
  const Chunk<kSquare> c(blockIdx.x, a.tokens);
  const int d = c.width(a.width_qk), e = c.width(a.width_v), m = c.width(rows);
  if constexpr (kSquare) a.degree = 0;  // the compiler is told
  const bool earlier = c.chunk > 0;
  const PlainRows Q = c.rows(q, d), K = c.rows(k, d), V = c.rows(v, e);
  const PlainRows S = c.state(states, earlier, m, e);
  Slot qs(0), ks(1), vs(2), ss(3), phis(4);
  request(Wanted{qs, Q, 0, 0}, Wanted{ks, K, 0, 0});
  if (!kEarly) request(Wanted{vs, V, 0, 0}, Wanted{ss, S, 0, 0, earlier});
  const KeptInChunk kept(c, keep, running_shared + (a.degree == 0 ? 4 : 5) * kTile);
  arrived<kExact, kEarly ? 0 : 1>(Wanted{qs, Q, 0, 0}, Wanted{ks, K, 0, 0});
  Product<kExact> s;
  for (int x0 = 0; x0 < d; x0 += kC) {
    fetch<kExact>(Wanted{qs, Q, 0, x0}, Wanted{ks, K, 0, x0});
    s.template add<false, true>(qs.tile, ks.tile, up_to_eight(d - x0));
  }
  if (kEarly)
    __syncthreads();  // everybody has read the keys
  else
    arrived<kExact, 0>(Wanted{vs, V, 0, 0}, Wanted{ss, S, 0, 0, earlier});
  float* P = ks.own();
  kept.between(P);
  s.each([&](int i, int j, float& value) {
    P[place(i, j)] = as_factor<kExact>(P[place(i, j)] * polynomial(a.degree, value));
  });
  if (kEarly) {
    wait_for_previous();
    request(Wanted{vs, V, 0, 0}, Wanted{ss, S, 0, 0, earlier});
    arrived<kExact, 0>(Wanted{vs, V, 0, 0}, Wanted{ss, S, 0, 0, earlier});
  } else {
    __syncthreads();
  }
  for (int y0 = 0; y0 < e; y0 += kC) {
    const int columns = up_to_eight(e - y0);
    Product<kExact> o;
    for (int f0 = 0; f0 < m && earlier; f0 += kC) {
      const float* from = qs.tile;
      fetch<kExact>(Wanted{qs, Q, 0, a.degree == 0 ? f0 : 0}, Wanted{ss, S, f0, y0});
      if (a.degree > 0) {
        __syncthreads();  // the tile before is read
        monomial_tile<kExact>(
            a, f0, RowsOf(qs, Q), [](int) { return 1.0f; }, phis.own());
        from = phis.tile;
      }
      o.template add<false, false>(from, ss.tile, up_to_eight(m - f0), kC, columns);
    }
    o.scale(kept.before);
    fetch<kExact>(Wanted{vs, V, 0, y0});
    o.template add<false, false>(P, vs.tile, c.depth(), kC, columns);
    o.store(c.out(out, e), 0, y0);
  }
}

// Channels whose sums of every thread fit into one tile.
constexpr int kNarrow = kTile / kRunningThreads;

// What the gradients of queries and of keys have in common: rows X, whose products with the state's rows S
// meet Y, times a weight of each row.
struct RowSide {
  const PlainRows &X, &Y, &S;
  Slot &xs, &ys, &spare;  // what spare holds is not needed meanwhile
  const float* weight;
  bool there;  // a state beyond this chunk
};

// dx = pairs(x0) + diag(weight) Y S^T for degree 0; otherwise that is the gradient of monomials and goes
// through them. `pairs` adds what comes from inside the chunk.
template <bool kExact, bool kSquare, class Pairs>
__device__ void row_gradients(const LinearAttention& a, int m, const Chunk<kSquare>& c, const RowSide& side,
                              Slot& ss, float* factors, Pairs pairs, float* dx) {
  const int d = c.width(a.width_qk), e = c.width(a.width_v);
  const int thread = static_cast<int>(threadIdx.x);
  const auto from_state = [&](Product<kExact>& sum, int f0, int columns) {
    for (int y0 = 0; y0 < e; y0 += kC) {
      fetch<kExact>(Wanted{side.ys, side.Y, 0, y0}, Wanted{ss, side.S, f0, y0});
      sum.template add<false, true>(side.ys.tile, ss.tile, up_to_eight(e - y0), kC, columns);
    }
    sum.scale(side.weight);
  };
  const bool through = a.degree > 0 && side.there;
  // Four threads a row, each with a sum of its own (the same bits every time): channel x of thread i stands
  // at x * threads + i.
  auto* channels = reinterpret_cast<uint32_t*>(factors + kC);
  float* spread = d <= kNarrow ? side.spare.tile : factors + 2 * kC;
  if (through) {
    __syncthreads();
    side.spare.own();
    for (int x = 0; x < d; ++x) spread[x * kRunningThreads + thread] = 0;
    fetch<kExact>(Wanted{side.xs, side.X, 0, 0});
    const RowsOf x(side.xs, side.X);
    for (int f0 = 0; f0 < m; f0 += kC) {
      Product<kExact> sum;
      from_state(sum, f0, up_to_eight(m - f0));
      __syncthreads();
      float* dphi = ss.own();
      sum.each([&](int i, int f, float& value) { dphi[place(i, f)] = value; });
      if (thread < kC) {
        const Monomial one(a, f0 + thread);
        channels[thread] = one.channels, factors[thread] = one.factor;
      }
      __syncthreads();
      const int row = thread % kC, quarter = thread / kC * (kC / 4);
      if (row < c.n)
        for (int f = quarter; f < quarter + kC / 4 && f0 + f < m; ++f)
          through_monomial({factors[f], channels[f]}, x, row, dphi[place(row, f)], spread + thread);
      __syncthreads();
    }
  }
  for (int x0 = 0; x0 < d; x0 += kC) {
    Product<kExact> sum;
    if (a.degree == 0 && side.there) from_state(sum, x0, up_to_eight(d - x0));
    pairs(sum, x0);
    if (through)
      sum.each([&](int i, int x, float& value) {
        for (int part = 0; part < 4 && x0 + x < d; ++part)
          value += spread[(x0 + x) * kRunningThreads + part * kC + i];
      });
    sum.store(c.out(dx, d), 0, x0);
  }
}

template <bool kExact, bool kSquare>
__global__ __launch_bounds__(kRunningThreads,
                             2) void gradients_kernel(LinearAttention a, int64_t rows, const float* q,
                                                      const float* k, const float* v, const float* keep,
                                                      const float* dout, const float* states,
                                                      const float* dstates, float* dq, float* dk, float* dv) {
  const Chunk<kSquare> c(blockIdx.x, a.tokens);
  const int d = c.width(a.width_qk), e = c.width(a.width_v), m = c.width(rows);
  if constexpr (kSquare) a.degree = 0;  // the compiler is told
  const bool earlier = c.chunk > 0, later = c.chunk + 1 < c.chunks;
  const PlainRows Q = c.rows(q, d), K = c.rows(k, d), V = c.rows(v, e), dO = c.rows(dout, e);
  const PlainRows S = c.state(states, earlier, m, e);
  const PlainRows dS = c.state(dstates, later, m, e);
  Slot qs(0), ks(1), vs(2), os(3), ps(4), ds(5), ss(6);
  request(Wanted{vs, V, 0, 0}, Wanted{os, dO, 0, 0});
  request(Wanted{qs, Q, 0, 0}, Wanted{ks, K, 0, 0});
  request(Wanted{ss, S, 0, 0, earlier});
  const KeptInChunk kept(c, keep, running_shared + 7 * kTile);
  {
    Product<kExact> s, dp;
    arrived<kExact, 2>(Wanted{vs, V, 0, 0}, Wanted{os, dO, 0, 0});
    for (int y0 = 0; y0 < e; y0 += kC) {
      fetch<kExact>(Wanted{vs, V, 0, y0}, Wanted{os, dO, 0, y0});
      dp.template add<false, true>(os.tile, vs.tile, up_to_eight(e - y0));
    }
    dp.settle();
    arrived<kExact, 1>(Wanted{qs, Q, 0, 0}, Wanted{ks, K, 0, 0});
    for (int x0 = 0; x0 < d; x0 += kC) {
      fetch<kExact>(Wanted{qs, Q, 0, x0}, Wanted{ks, K, 0, x0});
      s.template add<false, true>(qs.tile, ks.tile, up_to_eight(d - x0));
    }
    float *P = ps.own(), *to = ds.own();
    kept.between(P);
    s.each([&](int i, int j, float& value) {
      const float g = P[place(i, j)];
      P[place(i, j)] = as_factor<kExact>(g * polynomial(a.degree, value));
      to[place(i, j)] = g * slope(a.degree, value);
    });
    // The same thread has the same places of both.
    dp.each(
        [&](int i, int j, float& value) { to[place(i, j)] = as_factor<kExact>(to[place(i, j)] * value); });
  }
  arrived<kExact, 0>(Wanted{ss, S, 0, 0, earlier});
  row_gradients<kExact>(
      a, m, c, {Q, dO, S, qs, os, vs, kept.before, earlier}, ss, kept.keep,
      [&](Product<kExact>& sum, int x0) {
        fetch<kExact>(Wanted{ks, K, 0, x0});
        sum.template add<false, false>(ds.tile, ks.tile, c.depth(), kC, up_to_eight(d - x0));
      },
      dq);
  row_gradients<kExact>(
      a, m, c, {K, V, dS, ks, vs, os, kept.to_end, later}, ss, kept.keep,
      [&](Product<kExact>& sum, int x0) {
        fetch<kExact>(Wanted{qs, Q, 0, x0});
        sum.template add<true, false>(ds.tile, qs.tile, c.depth(), kC, up_to_eight(d - x0));
      },
      dk);
  for (int y0 = 0; y0 < e; y0 += kC) {
    const int columns = up_to_eight(e - y0);
    Product<kExact> sum;
    for (int f0 = 0; f0 < m && later; f0 += kC) {
      const float* from = ks.tile;
      fetch<kExact>(Wanted{ks, K, 0, a.degree == 0 ? f0 : 0}, Wanted{ss, dS, f0, y0});
      if (a.degree > 0) {
        __syncthreads();  // the tile before is read
        monomial_tile<kExact>(
            a, f0, RowsOf(ks, K), [](int) { return 1.0f; }, qs.own());
        from = qs.tile;
      }
      sum.template add<false, false>(from, ss.tile, up_to_eight(m - f0), kC, columns);
    }
    sum.scale(kept.to_end);
    fetch<kExact>(Wanted{os, dO, 0, y0});
    sum.template add<true, false>(ps.tile, os.tile, c.depth(), kC, columns);
    sum.store(c.out(dv, e), 0, y0);
  }
}

}  // namespace

void write_states(const LinearAttention& a, int64_t sequences, bool tf32, bool queries, const float* x,
                  const float* y, const float* keep, float* states, float* whole, void* stream) {
  const int64_t rows = state_rows(a);
  const bool square = a.degree == 0 && square_heads(a, x, y, states);
  const int64_t blocks = sequences * running_chunks(a.tokens) * tiles_of(a.width_v);
  for_kind(tf32, square, [&](auto exact, auto squared) {
    launch_running(write_states_kernel<exact, squared>, blocks, a.degree == 0 ? 2 : 3, kKeptFloats, stream,
                   "write_states", Start::kInOrder, a, rows, queries, x, y, keep, states, whole);
  });
}

void scan_states(int64_t sequences, int64_t chunks, int64_t size, bool backward, const float* whole,
                 float* states, void* stream) {
  launch_running(scan_states_kernel, (sequences * size + kRunningThreads - 1) / kRunningThreads, 0, 0, stream,
                 "scan_states", Start::kInOrder, sequences, chunks, size, backward, whole, states);
}

void running_outputs(const LinearAttention& a, int64_t sequences, bool tf32, const float* q, const float* k,
                     const float* v, const float* keep, const float* states, float* out, Start start,
                     void* stream) {
  const int64_t blocks = sequences * running_chunks(a.tokens), rows = state_rows(a);
  const bool square = a.degree == 0 && square_heads(a, q, k, v, states, out);
  const auto go = [&](auto kernel, Start when) {
    launch_running(kernel, blocks, a.degree == 0 ? 4 : 5, kKeptFloats, stream, "running_outputs", when, a,
                   rows, q, k, v, keep, states, out);
  };
  if (square && start == Start::kEarly)
    return tf32 ? go(outputs_kernel<false, true, true>, start) : go(outputs_kernel<true, true, true>, start);
  for_kind(tf32, square,
           [&](auto exact, auto squared) { go(outputs_kernel<exact, squared, false>, Start::kInOrder); });
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
  float *states = work, *whole = work + (chunks > 1 ? sequences * chunks * size : 0);
  if (chunks > 1) {
    write_states(a, sequences, tf32, false, k, v, keep, states, whole, stream);
    scan_states(sequences, chunks, size, false, whole, states, stream);
  }
  running_outputs(a, sequences, tf32, q, k, v, keep, states, out, Start::kInOrder, stream);
}

void linear_attention_backward(const LinearAttention& a, int64_t sequences, bool tf32, const float* q,
                               const float* k, const float* v, const float* keep, const float* dout,
                               float* dq, float* dk, float* dv, float* work, void* stream) {
  if (sequences == 0) return;
  const int64_t chunks = running_chunks(a.tokens), rows = state_rows(a), size = rows * a.width_v;
  const int64_t all = chunks > 1 ? sequences * chunks * size : 0;
  float *states = work, *dstates = states + all, *whole = dstates + all;
  if (chunks > 1) {
    write_states(a, sequences, tf32, false, k, v, keep, states, whole, stream);
    scan_states(sequences, chunks, size, false, whole, states, stream);
    write_states(a, sequences, tf32, true, q, dout, keep, dstates, whole, stream);
    scan_states(sequences, chunks, size, true, whole, dstates, stream);
  }
  const bool square = a.degree == 0 && square_heads(a, q, k, v, dout, states, dstates, dq, dk, dv);
  const int64_t wide = a.width_qk > kNarrow ? kRunningThreads * a.width_qk : 0;
  for_kind(tf32, square, [&](auto exact, auto squared) {
    launch_running(gradients_kernel<exact, squared>, sequences * chunks, 7,
                   kKeptFloats + (a.degree > 0 ? kC + wide : 0), stream, "linear_attention_backward",
                   Start::kInOrder, a, rows, q, k, v, keep, dout, states, dstates, dq, dk, dv);
  });
}

}  // namespace rankscope::cuda
