// float32 products on the tensor cores. Each factor is split into two TF32 numbers, big + small, and
// a b = big big + (big small + small big); what is left out, small small, is below 2^-22 of the product. The
// two sums are kept apart and added last, so that the tensor cores' truncation touches the small one little.
//
// Fragments of mma.m16n8k8, with g = lane / 4 and t = lane % 4:
//   A (16 x 8)  a0 (g, t)   a1 (g + 8, t)   a2 (g, t + 4)   a3 (g + 8, t + 4)
//   B (8 x 8)   b0 (t, g)   b1 (t + 4, g)
//   C (16 x 8)  c0 (g, 2t)  c1 (g, 2t + 1)  c2 (g + 8, 2t)  c3 (g + 8, 2t + 1)
#pragma once

#include <cstdint>

namespace rankscope::cuda {

struct Split {
  uint32_t big, small;
};

/// big is x rounded to TF32's 11 bits; of the rest TF32 keeps all but perhaps the last bit.
__device__ __forceinline__ Split split(float x) {
  const uint32_t big = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
  return {big, __float_as_uint(x - __uint_as_float(big))};
}

/// x rounded to TF32; what is not a number stays none.
__device__ __forceinline__ float tf32_round(float x) {
  uint32_t y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return __uint_as_float(y);
}

/// The same for the tensor cores alone, which drop the 13 bits below, and in one instruction: a NaN with all
/// its bits set, which the GPU's own arithmetic gives, comes out as a number next to zero.
__device__ __forceinline__ float tf32_factor(float x) {
  return __uint_as_float(__float_as_uint(x) + 0x1000u);
}

/// x is not negative: here every NaN stays one.
__device__ __forceinline__ float tf32_factor_not_negative(float x) {
  return __uint_as_float(min(__float_as_uint(x) + 0x1000u, 0x7fffffffu));
}

__device__ __forceinline__ void mma_tf32(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                         uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// A sum of products in two parts.
struct Sum {
  float big[4] = {}, small[4] = {};
  __device__ __forceinline__ void add(const Split (&a)[4], const Split& b0, const Split& b1) {
    mma_tf32(small, a[0].small, a[1].small, a[2].small, a[3].small, b0.big, b1.big);
    mma_tf32(small, a[0].big, a[1].big, a[2].big, a[3].big, b0.small, b1.small);
    mma_tf32(big, a[0].big, a[1].big, a[2].big, a[3].big, b0.big, b1.big);
  }
  __device__ __forceinline__ float operator[](int i) const { return big[i] + small[i]; }
};

}  // namespace rankscope::cuda
