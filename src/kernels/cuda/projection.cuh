// Q, K and V of 16 tokens of width 64, made where they are used: a block holds the weights of 64 columns of
// each in shared memory, a warp holds the tokens as fragments.
//
// Which number of a row stands at which place of a contraction is free as long as both factors agree: lane t
// takes numbers 16s + 4t to 16s + 4t + 3, the first two for one product of mma.m16n8k8 and the others for the
// next. The fragments that come out are factors of the next product as they are (mma.cuh): columns 2t and
// 2t + 1 stand at places t and t + 4.
#pragma once

#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/tiles.cuh"

namespace rankscope::cuda {

constexpr int kSlab = 64;   // columns of Q, K and V each that a block works on
constexpr int kInner = 64;  // width of the tokens
constexpr int kSteps = kInner / 16;

/// Three slabs of W, rounded to TF32, and of b.
struct Slabs {
  float W[3][kSlab][kInner];
  float b[3][kSlab / 2][4];  // of two columns, twice: as an accumulator starts

  /// Rows of 256 bytes all start in one bank: every other one has its halves of 128 bytes swapped around.
  static __device__ __forceinline__ int place(int row, int column) { return column ^ ((row & 1) << 4); }

  /// By all threads of the block; W and b point at the slab's first row of Q, with K and V `apart` rows
  /// apart. V comes times value_scale.
  __device__ void load(const float* W_, const float* b_, int64_t apart, float value_scale) {
    constexpr int kVectors = kInner / 4;
    for (int i = threadIdx.x; i < 3 * kSlab * kVectors; i += blockDim.x) {
      const int part = i / (kSlab * kVectors), row = i / kVectors % kSlab, column = i % kVectors * 4;
      alignas(16) float w[4];
      load_floats<4>(W_ + (part * apart + row) * kInner + column, w);
#pragma unroll
      for (float& x : w) x = tf32_round(part == 2 ? x * value_scale : x);
      store_floats<4>(&W[part][row][place(row, column)], w);
    }
    for (int i = threadIdx.x; i < 3 * kSlab; i += blockDim.x) {
      const int part = i / kSlab, column = i % kSlab;
      const float x = b_ == nullptr ? 0.0f : b_[part * apart + column];
      float* to = &b[part][column / 2][column % 2];
      to[0] = to[2] = part == 2 ? x * value_scale : x;
    }
  }
};

/// x to the nearest TF32 number as (2^13 + 1) x - 2^13 x: on the unit that has least to do, into whatever
/// register the next product wants it in, and what is not a number stays none.
__device__ __forceinline__ float tf32_nearest(float x) { return fmaf(-8192.0f, x, fmaf(8192.0f, x, x)); }

/// 16 tokens, rounded: rows g and g + 8.
struct Tokens {
  float x[2][kSteps][4];

  __device__ __forceinline__ void load(const float* from, int64_t stride, Lane lane) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        alignas(16) float v[4];
        load_floats<4>(from + (lane.g + 8 * r) * stride + 16 * s + 4 * lane.t, v);
#pragma unroll
        for (int i = 0; i < 4; ++i) x[r][s][i] = tf32_nearest(v[i]);
      }
  }
};

/// 16 rows by 8 columns, a C fragment: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
struct Fragment {
  alignas(16) float x[4];

  __device__ __forceinline__ void round_to_tf32() {
#pragma unroll
    for (float& v : x) v = tf32_nearest(v);
  }
  __device__ __forceinline__ uint32_t operator[](int i) const { return __float_as_uint(x[i]); }
};

/// Columns first to first + 8 of the Q, K or V (part 0, 1, 2) of S sequences, rounded.
template <int S>
struct Projection {
  Fragment of[S];
  __device__ __forceinline__ Projection(const Slabs& slabs, int part, int first, const Tokens (&tokens)[S],
                                        Lane lane) {
#pragma unroll
    for (Fragment& x : of) load_floats<4>(slabs.b[part][first / 2 + lane.t], x.x);
    const int row = first + lane.g;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      alignas(16) float w[4];
      load_floats<4>(&slabs.W[part][row][Slabs::place(row, 16 * s + 4 * lane.t)], w);
#pragma unroll
      for (int e = 0; e < 4; e += 2)
#pragma unroll
        for (int i = 0; i < S; ++i)
          mma_tf32(of[i].x, __float_as_uint(tokens[i].x[0][s][e]), __float_as_uint(tokens[i].x[1][s][e]),
                   __float_as_uint(tokens[i].x[0][s][e + 1]), __float_as_uint(tokens[i].x[1][s][e + 1]),
                   __float_as_uint(w[e]), __float_as_uint(w[e + 1]));
    }
#pragma unroll
    for (Fragment& x : of) x.round_to_tf32();
  }
};

/// Adds rows a times rows b transposed over 8 columns, both rounded.
__device__ __forceinline__ void add_row_products(const Fragment& a, const Fragment& b, Square& sum) {
#pragma unroll
  for (int n = 0; n < 2; ++n) mma_tf32(sum.x[n], a[0], a[2], a[1], a[3], b[2 * n], b[2 * n + 1]);
}

/// A square's two halves, rounded: the first factor of mixing.
struct Mixer {
  Fragment half[2];
  __device__ __forceinline__ explicit Mixer(const Square& s) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) half[n].x[i] = s.x[n][i];
      half[n].round_to_tf32();
    }
  }
  /// The square times 16 rows of 8 columns, given turned: columns g, rows 8n + 2t and 8n + 2t + 1.
  __device__ __forceinline__ Fragment mix(const float (&turned)[2][2]) const {
    Fragment out{};
#pragma unroll
    for (int n = 0; n < 2; ++n)
      mma_tf32(out.x, half[n][0], half[n][2], half[n][1], half[n][3], __float_as_uint(turned[n][0]),
               __float_as_uint(turned[n][1]));
    return out;
  }
};

/// Where a warp turns 16 x 16 numbers, two fragments beside each other: rows are longer, so that columns are
/// read from different banks.
struct Turner {
  float x[16][20];

  __device__ __forceinline__ void put(const Fragment& left, const Fragment& right, Lane lane) {
    __syncwarp();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      store_floats<2>(&x[lane.g + 8 * r][2 * lane.t], &left.x[2 * r]);
      store_floats<2>(&x[lane.g + 8 * r][8 + 2 * lane.t], &right.x[2 * r]);
    }
    __syncwarp();
  }
  /// Columns of fragment j, as mixing takes them.
  __device__ __forceinline__ void take(int j, Lane lane, float (&turned)[2][2]) const {
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) turned[n][e] = x[8 * n + 2 * lane.t + e][8 * j + lane.g];
  }
};

}  // namespace rankscope::cuda
