// What the kernels of running attention share: a block owns a chunk of 64 tokens, and every product it needs
// is one of tiles.
#pragma once

#include <type_traits>

#include "kernels/cuda/running_tiles.cuh"

namespace rankscope::cuda {

/// A chunk of one sequence. kSquare: heads are 64 wide and every matrix starts at 16 bytes, so that whatever
/// depends on widths is known when it is compiled. That is a third of the code or less, and code that does
/// not fit into the instruction cache costs more than products do.
template <bool kSquare>
struct Chunk {
  int64_t sequence, chunk, chunks, first;  // first: its first token's row in [sequences * tokens, ..]
  int n;

  // Divides in 32 bits: a launch has no more blocks than that.
  __device__ Chunk(unsigned block, int64_t tokens) : chunks((tokens + kC - 1) / kC) {
    sequence = block / static_cast<unsigned>(chunks);
    chunk = block % static_cast<unsigned>(chunks);
    first = sequence * tokens + chunk * kC;
    const int64_t left = tokens - chunk * kC;
    n = left < kC ? static_cast<int>(left) : kC;
  }
  /// Of the state before or behind it in [sequences, chunks, size].
  __device__ int64_t state(int64_t size) const { return (sequence * chunks + chunk) * size; }
  /// Its rows of a matrix [sequences * tokens, columns].
  __device__ PlainRows rows(const float* x, int64_t columns) const {
    return {x + first * columns, n, columns, kSquare};
  }
  __device__ OutRows out(float* x, int64_t columns) const {
    return {x + first * columns, n, columns, kSquare};
  }
  /// The state before or behind it in [sequences, chunks, rows, columns], where there is one.
  __device__ PlainRows state(const float* x, bool there, int64_t rows, int64_t columns) const {
    return {there ? x + state(rows * columns) : nullptr, rows, columns, kSquare};
  }
  /// Terms of a product over its tokens: zeros behind the last.
  __device__ int depth() const { return kSquare ? kC : up_to_eight(n); }
  /// A width of heads.
  static __device__ int width(int64_t columns) { return kSquare ? kC : static_cast<int>(columns); }
};

/// Floats of shared memory for what is kept.
constexpr int kKeptFloats = 3 * kC;

/// What is kept over a chunk: keep_0 ... keep_i and keep_{j+1} ... keep_last, zero outside; null keep: ones.
/// The block calls it together; what it writes is there behind it.
template <bool kSquare>
struct KeptInChunk {
  const Chunk<kSquare>& c;
  float *before, *to_end, *keep;
  bool all;

  __device__ KeptInChunk(const Chunk<kSquare>& chunk, const float* from, float* room)
      : c(chunk), before(room), to_end(before + kC), keep(to_end + kC), all(from == nullptr) {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    if (thread < 64) {  // two tokens a lane; the first warp multiplies forth, the second back
      const bool back = thread >= 32;
      const int i = back ? kC - 1 - 2 * lane : 2 * lane, j = back ? i - 1 : i + 1;
      const float a = i < c.n && !all ? from[c.first + i] : 1.0f,
                  b = j < c.n && !all ? from[c.first + j] : 1.0f;
      float product = a * b;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(kEveryLane, product, step);
        if (lane >= step) product *= other;
      }
      const float others = __shfl_up_sync(kEveryLane, product, 1), until = lane > 0 ? others : 1.0f;
      if (back) {
        to_end[i] = i < c.n ? until : 0.0f, to_end[j] = j < c.n ? until * a : 0.0f;
      } else {
        before[i] = i < c.n ? until * a : 0.0f, before[j] = j < c.n ? until * a * b : 0.0f;
        keep[i] = i < c.n ? a : 0.0f, keep[j] = j < c.n ? b : 0.0f;
      }
    }
    __syncthreads();
  }
  /// Of a state over the whole chunk.
  __device__ float whole() const { return before[c.n - 1]; }

  /// Tile G(i, j) = keep_{j+1} ... keep_i, zero above the diagonal and outside. The block calls it together.
  __device__ void between(float* G) const {
    const int thread = static_cast<int>(threadIdx.x);
    if (all) {
      for (int at = thread; at < kTile; at += kRunningThreads) {
        const int i = at / kC, j = at % kC;
        G[place(i, j)] = j <= i && i < c.n ? 1.0f : 0.0f;
      }
    } else if (thread < kC) {
      float product = 1;
#pragma unroll 8
      for (int i = 0; i < kC; ++i) {
        if (i > thread) product *= keep[i];
        G[place(i, thread)] = i >= thread && i < c.n ? product : 0.0f;
      }
    }
    __syncthreads();
  }
};

/// Whether Chunk<true> is for them: whole chunks of heads 64 wide, all of these pointers at 16 bytes.
template <class Shape, class... Pointers>
bool square_heads(const Shape& a, const Pointers*... pointers) {
  return a.tokens >= kC && a.width_qk == kC && a.width_v == kC &&
         ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

/// run(exact, square) with both as types: the kernel that is meant.
template <class Run>
void for_kind(bool tf32, bool square, Run run) {
  const auto then = [&](auto exact) {
    square ? run(exact, std::true_type()) : run(exact, std::false_type());
  };
  tf32 ? then(std::false_type()) : then(std::true_type());
}

/// Runs a kernel with so many tiles and floats of dynamic shared memory.
template <class... Parameters, class... Arguments>
void launch_running(void (*kernel)(Parameters...), int64_t blocks, int64_t tiles, int64_t floats,
                    void* stream, const char* name, Start start, const Arguments&... arguments) {
  const auto bytes = static_cast<int>((tiles * kTile + floats) * static_cast<int64_t>(sizeof(float)));
  launch_kernel(kernel, blocks_for(blocks, 1, name), kRunningThreads, bytes, stream, name, start,
                arguments...);
}

/// What each chunk adds to a state, in one direction of time, becomes the state before (behind) it.
void scan_states(int64_t sequences, int64_t chunks, int64_t size, bool backward, const float* whole,
                 float* states, void* stream);
/// states [sequences, chunks, rows, width_v] = what each chunk writes: keys times values, times what is kept
/// to its end; or, for `queries`, queries times gradients of outputs, times what is kept before them. whole
/// [sequences, chunks]: what is kept of a state over the chunk.
void write_states(const LinearAttention& a, int64_t sequences, bool tf32, bool queries, const float* x,
                  const float* y, const float* keep, float* states, float* whole, void* stream);
/// out = tril(G f(Q K^T)) V + diag(before) Phi(Q) S. kEarly: the kernel before it may still write V and S.
void running_outputs(const LinearAttention& a, int64_t sequences, bool tf32, const float* q, const float* k,
                     const float* v, const float* keep, const float* states, float* out, Start start,
                     void* stream);

}  // namespace rankscope::cuda
