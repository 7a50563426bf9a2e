// Philox and Box-Muller in single precision, for the CPU's vector loops and for CUDA: the same operations on
// both, so that the numbers differ only where one contracts a multiplication and an addition and the other
// does not. Internal linkage: the CPU's kernels are compiled once per instruction set and must not share a
// copy.
#pragma once

#include <math.h>

#include <cstdint>

#ifdef __CUDACC__
#define RANKSCOPE_HD static __host__ __device__ __forceinline__
#else
#define RANKSCOPE_HD [[maybe_unused]] static inline __attribute__((always_inline))
#endif

namespace rankscope {

struct PhiloxWords {
  uint32_t w0, w1, w2, w3;
};

/// The words of base/philox.h's Philox{seed, stream, step}.words(index).
RANKSCOPE_HD PhiloxWords philox_words(uint64_t seed, uint32_t stream, uint32_t step, uint64_t index) {
  uint32_t c0 = static_cast<uint32_t>(index), c1 = static_cast<uint32_t>(index >> 32), c2 = step, c3 = stream;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c0, b = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

RANKSCOPE_HD float float_from_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

RANKSCOPE_HD uint32_t bits_of_float(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

/// -2 log((word + 0.5) / 2^32), to 1.5e-7 of its value. Close to 1 the logarithm is taken of the distance
/// from 1, which the word gives exactly.
RANKSCOPE_HD float minus_two_log_uniform(uint32_t word) {
  const bool near_one = word >= 0xB504F334u;  // sqrt(1/2) * 2^32
  const uint32_t distance = near_one ? ~word : word;
  // Halves: a signed conversion is all that AVX2 has. The sum rounds once.
  const float t = (static_cast<float>(static_cast<int32_t>(distance >> 16)) * 65536.0f +
                   (static_cast<float>(static_cast<int32_t>(distance & 0xFFFFu)) + 0.5f)) *
                  0x1p-32f;
  // t = 2^e m with m in [sqrt(1/2), sqrt(2))
  const uint32_t bits = bits_of_float(t) - 0x3F3504F3u;
  const int32_t exponent = static_cast<int32_t>(bits) >> 23;
  const float m = float_from_bits((bits & 0x007FFFFFu) + 0x3F3504F3u);
  const float e = near_one ? 0.0f : static_cast<float>(exponent);
  const float f = near_one ? -t : m - 1.0f;
  float p = f * -0.0785961372f + 0.128816471f;  // log(1 + f) = f - f^2 / 2 + f^3 p(f)
  p = p * f + -0.131287538f;
  p = p * f + 0.14181192f;
  p = p * f + -0.166245542f;
  p = p * f + 0.200022863f;
  p = p * f + -0.250008104f;
  p = p * f + 0.333333167f;
  const float square = f * f;
  const float log = e * 0.693147181f + (f + square * (p * f - 0.5f));
  return -2.0f * log;
}

struct SineCosine {
  float sine, cosine;
};

/// Of the angle 2 pi (word + 0.5) / 2^32, to 1.2e-7: integers take off the quarter turns exactly.
RANKSCOPE_HD SineCosine sincos_turn(uint32_t word) {
  const uint32_t quarter = (word + 0x20000000u) >> 30;
  const int32_t rest = static_cast<int32_t>(word - (quarter << 30));
  const float x = (static_cast<float>(rest) + 0.5f) * 0x1p-32f, z = x * x;  // |x| <= 1/8 turn
  float s = z * -75.402068f + 81.5925535f;
  s = s * z + -41.3416626f;
  s = s * z + 6.28318529f;
  s = s * x;
  float c = z * 59.2460051f + -85.443743f;
  c = c * z + 64.9393265f;
  c = c * z + -19.7392087f;
  c = c * z + 1.0f;
  const bool odd = quarter & 1u;
  const float sine = odd ? c : s, cosine = odd ? s : c;
  // The signs over the quarters: sine + + - -, cosine + - - +.
  return {float_from_bits(bits_of_float(sine) ^ ((quarter & 2u) << 30)),
          float_from_bits(bits_of_float(cosine) ^ (((quarter + 1u) & 2u) << 30))};
}

struct Normals4 {
  float n0, n1, n2, n3;
};

/// Words (0, 1) and (2, 3) each give a pair: radius from the first, angle from the second, cosine before
/// sine.
RANKSCOPE_HD Normals4 box_muller(PhiloxWords w) {
  const float r0 = sqrtf(minus_two_log_uniform(w.w0)), r1 = sqrtf(minus_two_log_uniform(w.w2));
  const SineCosine a0 = sincos_turn(w.w1), a1 = sincos_turn(w.w3);
  return {r0 * a0.cosine, r0 * a0.sine, r1 * a1.cosine, r1 * a1.sine};
}

}  // namespace rankscope
