// The polynomial of linear attention and its monomials (kernels/running_attention.h), 64 of them at a time.
#pragma once

#include "kernels/cuda/running_tiles.cuh"

namespace rankscope::cuda {

__device__ __forceinline__ float polynomial(int degree, float s) {
  if (degree == 0) return s;
  if (degree == 1) return 1 + s;
  if (degree == 2) return 1 + s * (1 + s * 0.5f);
  return 1 + s * (1 + s * (0.5f + s * (1.0f / 6)));
}
__device__ __forceinline__ float slope(int degree, float s) {
  return degree <= 1 ? 1.0f : polynomial(degree - 1, s);
}

/// A factor and up to three channels.
struct Monomial {
  float factor;
  uint32_t channels;

  __device__ Monomial(float by, uint32_t of) : factor(by), channels(of) {}
  /// Zero behind the last.
  __device__ Monomial(const LinearAttention& a, int64_t f)
      : factor(f < a.monomials.count ? a.packed.factor[f] : 0.0f),
        channels(f < a.monomials.count ? a.packed.channels[f] : 0u) {}
  __device__ __forceinline__ uint32_t channel(int i) const { return channels >> 8 * i & 255; }
};

/// Numbers of the rows of a chunk, from its tile where that holds all of them.
struct RowsOf {
  const float* tile;
  const PlainRows& m;
  bool whole;
  __device__ RowsOf(const Slot& slot, const PlainRows& matrix)
      : tile(slot.tile), m(matrix), whole(matrix.columns <= kC) {}
  __device__ __forceinline__ float operator()(int row, uint32_t channel) const {
    if (channel == kNoChannel) return 1;
    return whole ? tile[place(row, static_cast<int>(channel))] : m(row, channel);
  }
};

/// phi(row, f) = weight(row) times monomial f0 + f of the row. The block calls it together; what it writes is
/// there behind it, and what it writes over must have been read.
template <bool kExact, class Weight>
__device__ void monomial_tile(const LinearAttention& a, int f0, const RowsOf& x, Weight weight, float* phi) {
  const int thread = static_cast<int>(threadIdx.x), f = thread % kC;
  const Monomial own(a, f0 + f);
#pragma unroll 4
  for (int row = thread / kC; row < kC; row += kRunningThreads / kC)
    phi[place(row, f)] = as_factor<kExact>(weight(row) * own.factor * x(row, own.channel(0)) *
                                           x(row, own.channel(1)) * x(row, own.channel(2)));
  __syncthreads();
}

/// Adds to dx, of a row, what comes through a monomial of gradient g; channels are a block's threads apart.
__device__ __forceinline__ void through_monomial(const Monomial& own, const RowsOf& x, int row, float g,
                                                 float* dx) {
  g *= own.factor;
  const uint32_t a = own.channel(0), b = own.channel(1), c = own.channel(2);
  const float xa = x(row, a), xb = x(row, b), xc = x(row, c);
  float ga = g * xb * xc, gb = g * xa * xc, gc = g * xa * xb;
  // Equal channels stand side by side: they come together, so that every number is read before one is
  // written.
  if (b == c) gb += gc;
  if (a == b) ga += gb;
  const bool has_a = a != kNoChannel, has_b = b != kNoChannel && b != a, has_c = c != kNoChannel && c != b;
  float *at_a = dx + a * kRunningThreads, *at_b = dx + b * kRunningThreads, *at_c = dx + c * kRunningThreads;
  const float da = has_a ? *at_a : 0.0f, db = has_b ? *at_b : 0.0f, dc = has_c ? *at_c : 0.0f;
  if (has_a) *at_a = da + ga;
  if (has_b) *at_b = db + gb;
  if (has_c) *at_c = dc + gc;
}

}  // namespace rankscope::cuda
