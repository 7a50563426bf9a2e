// What the kernels of running attention share: a block owns a chunk of 64 tokens, and every product it needs
// is a 64 x 64 tile by the tensor cores.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/running_attention.h"

namespace rankscope::cuda {

constexpr int kC = static_cast<int>(kRunningChunk);
constexpr int kRunningThreads = 256;  // 8 warps: 4 times 16 rows, 2 times 32 columns
constexpr int kSquareRow = kC + 1;    // of a 64 x 64 matrix in shared memory: columns fall into every bank
constexpr int kSquare = kC * kSquareRow;

extern __shared__ float running_shared[];

/// Where factors of a product wait, 16 terms at a time; the rows are as long as fragments are read without
/// conflicts.
constexpr int kTerms = 16, kStageA = kTerms + 4, kStageB = kC + 8;
constexpr int kStage = kC * kStageA + kTerms * kStageB;

/// Which index of a factor lies side by side in memory, so that neighbouring threads read neighbours.
enum class Along { terms, tile };

/// A 64 x 64 tile of a b, spread over the block's threads.
template <bool kExact>
struct Product {
  float big[4][4] = {}, small[4][4] = {};

  /// Adds sum_k a(row, k) b(k, column) over k < depth. a and b answer 0 outside of what there is.
  template <Along kA, Along kB, class A, class B>
  __device__ void add(int depth, A a, B b, float* stage) {
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, g = lane >> 2, t = lane & 3;
    const int row = thread / 32 % 4 * 16, column = thread / 128 * 32;
    float *sa = stage, *sb = stage + kC * kStageA;
    for (int k0 = 0; k0 < depth; k0 += kTerms) {
      for (int i = thread; i < kC * kTerms; i += kRunningThreads) {
        const int r = kA == Along::terms ? i / kTerms : i % kC, k = kA == Along::terms ? i % kTerms : i / kC;
        sa[r * kStageA + k] = factor(k0 + k < depth ? a(r, k0 + k) : 0.0f);
      }
      for (int i = thread; i < kC * kTerms; i += kRunningThreads) {
        const int c = kB == Along::terms ? i / kTerms : i % kC, k = kB == Along::terms ? i % kTerms : i / kC;
        sb[k * kStageB + c] = factor(k0 + k < depth ? b(k0 + k, c) : 0.0f);
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kTerms; k += 8) {
        const float* fa = sa + (row + g) * kStageA + k + t;
        const float x[4] = {fa[0], fa[8 * kStageA], fa[4], fa[8 * kStageA + 4]};
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float* fb = sb + (k + t) * kStageB + column + 8 * n + g;
          const float y[2] = {fb[0], fb[4 * kStageB]};
          if constexpr (kExact) {
            const Split s[4] = {split(x[0]), split(x[1]), split(x[2]), split(x[3])};
            const Split z[2] = {split(y[0]), split(y[1])};
            mma_tf32(small[n], s[0].small, s[1].small, s[2].small, s[3].small, z[0].big, z[1].big);
            mma_tf32(small[n], s[0].big, s[1].big, s[2].big, s[3].big, z[0].small, z[1].small);
            mma_tf32(big[n], s[0].big, s[1].big, s[2].big, s[3].big, z[0].big, z[1].big);
          } else {
            mma_tf32(big[n], __float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                     __float_as_uint(x[3]), __float_as_uint(y[0]), __float_as_uint(y[1]));
          }
        }
      }
      __syncthreads();
    }
  }

  /// use(row, column, value) for this thread's 16 numbers.
  template <class Use>
  __device__ void each(Use use) const {
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, g = lane >> 2, t = lane & 3;
    const int row = thread / 32 % 4 * 16 + g, column = thread / 128 * 32 + 2 * t;
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) use(row + 8 * (i >> 1), column + 8 * n + (i & 1), big[n][i] + small[n][i]);
  }

  /// sums[half * 64 + row] += sum over this tile's columns of value times x(row, column); the two halves of
  /// the columns are different warps'.
  template <class X>
  __device__ void add_row_sums(X x, float* sums) const {
    const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, g = lane >> 2;
    float two[2] = {0, 0};
    const int first = thread / 32 % 4 * 16 + g;
    each([&](int row, int column, float value) { two[row != first] += value * x(row, column); });
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      two[r] += __shfl_xor_sync(kEveryLane, two[r], 1);
      two[r] += __shfl_xor_sync(kEveryLane, two[r], 2);
      if ((lane & 3) == 0) sums[thread / 128 * kC + first + 8 * r] += two[r];
    }
  }

 private:
  static __device__ __forceinline__ float factor(float x) { return kExact ? x : tf32_round(x); }
};

/// A chunk of one sequence.
struct Chunk {
  int64_t sequence, chunk, chunks, first;  // first: its first token's row in [sequences * tokens, ..]
  int n;

  __device__ Chunk(int64_t block, int64_t tokens) : chunks((tokens + kC - 1) / kC) {
    sequence = block / chunks;
    chunk = block % chunks;
    first = sequence * tokens + chunk * kC;
    const int64_t left = tokens - chunk * kC;
    n = left < kC ? static_cast<int>(left) : kC;
  }
  /// Of the state before or behind it in [sequences, chunks, size].
  __device__ int64_t state(int64_t size) const { return (sequence * chunks + chunk) * size; }
};

/// Rows of a matrix that are this chunk's: zero outside.
struct ChunkRows {
  const float* data;
  int n, width;
  __device__ ChunkRows(const Chunk& c, const float* x, int64_t columns)
      : data(x + c.first * columns), n(c.n), width(static_cast<int>(columns)) {}
  __device__ __forceinline__ float operator()(int row, int column) const {
    return row < n && column < width ? data[static_cast<int64_t>(row) * width + column] : 0.0f;
  }
};

/// A state [rows, columns]: zero outside.
struct StateMatrix {
  const float* data;
  int64_t rows, columns;
  __device__ __forceinline__ float operator()(int64_t row, int64_t column) const {
    return row < rows && column < columns ? data[row * columns + column] : 0.0f;
  }
};

/// keep_{j+1} ... keep_i, keep_0 ... keep_i and keep_{j+1} ... keep_last of a chunk, zero outside; null keep:
/// ones. The block calls it together; what it writes is there behind it.
struct KeptInChunk {
  float *G, *before, *to_end, *keep;
  static constexpr int kFloats = kSquare + 3 * kC;

  __device__ KeptInChunk(const Chunk& c, const float* from, float* room)
      : G(room), before(room + kSquare), to_end(before + kC), keep(to_end + kC) {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < kC) keep[thread] = thread >= c.n ? 0.0f : from == nullptr ? 1.0f : from[c.first + thread];
    __syncthreads();
    if (thread < kC) {
      float product = 1;
      for (int i = 0; i < kC; ++i) {
        if (i > thread) product *= keep[i];
        const bool there = i >= thread && i < c.n;
        G[i * kSquareRow + thread] = there ? product : 0.0f;
        if (i == c.n - 1) to_end[thread] = there ? product : 0.0f;
      }
    } else if (thread < 2 * kC) {
      const int i = thread - kC;
      float product = 1;
      for (int j = 0; j <= i; ++j) product *= keep[j];
      before[i] = i < c.n ? product : 0.0f;
    }
    __syncthreads();
  }
  __device__ __forceinline__ float between(int i, int j) const { return G[i * kSquareRow + j]; }
};

/// Runs a kernel with its dynamic shared memory.
template <class... Parameters, class... Arguments>
void launch_running(void (*kernel)(Parameters...), int64_t blocks, int64_t floats, void* stream,
                    const char* name, Arguments... arguments) {
  const auto bytes = static_cast<int>(floats * static_cast<int64_t>(sizeof(float)));
  if (bytes > 48 * 1024)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), name);
  kernel<<<blocks_for(blocks, 1, name), kRunningThreads, static_cast<size_t>(bytes), as_stream(stream)>>>(
      arguments...);
  check_launch(name);
}

/// What each chunk adds to a state, in one direction of time, becomes the state before (behind) it.
void scan_states(int64_t sequences, int64_t chunks, int64_t size, bool backward, const float* whole,
                 float* states, void* stream);
/// states [sequences, chunks, rows, width_v] = what each chunk writes: keys times values, times what is kept
/// to its end; or, for `queries`, queries times gradients of outputs, times what is kept before them. whole
/// [sequences, chunks]: what is kept of a state over the chunk.
void write_states(const LinearAttention& a, int64_t sequences, bool tf32, bool queries, const float* x,
                  const float* y, const float* keep, float* states, float* whole, void* stream);
/// out = tril(G f(Q K^T)) V + diag(before) Phi(Q) S.
void running_outputs(const LinearAttention& a, int64_t sequences, bool tf32, const float* q, const float* k,
                     const float* v, const float* keep, const float* states, float* out, void* stream);

}  // namespace rankscope::cuda
