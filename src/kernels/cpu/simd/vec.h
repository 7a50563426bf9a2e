// Vectors of one instruction set. Files in this folder are compiled once per set, each time into a namespace
// of its own (RANKSCOPE_SIMD, see cmake/Kernels.cmake). They use no inline function of the standard library:
// the linker keeps one copy of each, and a copy compiled for AVX-512 must not be the one that an older CPU
// runs.
#pragma once

#include <cstdint>
#include <utility>

#if defined(__AVX512F__)
#define RANKSCOPE_VECTOR_BYTES 64
#elif defined(__AVX__)
#define RANKSCOPE_VECTOR_BYTES 32
#else
#define RANKSCOPE_VECTOR_BYTES 16
#endif

namespace rankscope::simd::RANKSCOPE_SIMD {

#define RANKSCOPE_INLINE static inline __attribute__((always_inline))

constexpr int vector_bytes = RANKSCOPE_VECTOR_BYTES;
template <class T>
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

template <class T, int W>
struct VectorOf {
  typedef T type __attribute__((vector_size(W * sizeof(T))));
};
template <class T, int W = lanes<T>>
using Vec = typename VectorOf<T, W>::type;

template <class T, int W = lanes<T>>
RANKSCOPE_INLINE Vec<T, W> load(const T* p) {
  Vec<T, W> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <class T, int W>
RANKSCOPE_INLINE void store_vec(T* p, Vec<T, W> v) {
  __builtin_memcpy(p, &v, sizeof v);
}
template <class T>
RANKSCOPE_INLINE void store(T* p, Vec<T> v) {
  store_vec<T, lanes<T>>(p, v);
}

template <class T, int W = lanes<T>>
RANKSCOPE_INLINE Vec<T, W> splat(T x) {
  return x - Vec<T, W>{};  // minus, not plus: x + 0 would not be x for x = -0
}

RANKSCOPE_INLINE float root(float x) { return __builtin_sqrtf(x); }
RANKSCOPE_INLINE double root(double x) { return __builtin_sqrt(x); }

/// b where either is a NaN.
template <class T>
RANKSCOPE_INLINE Vec<T> larger(Vec<T> a, Vec<T> b) {
  return a > b ? a : b;
}

/// 2^t for t <= 0. float: within 1.5 ulp (a minimax polynomial of degree 5, 0.77 ulp, and its rounding);
/// double: the Taylor series to x^13, 2 ulp. Exactly 1 at 0. Below 2^-100 (2^-1000) it stays there: for a
/// softmax that is zero, and no product of it is subnormal. A NaN stays one.
RANKSCOPE_INLINE Vec<float> exp2_nonpositive(Vec<float> t) {
  constexpr float to_integer = 0x1.8p23f;  // adding it rounds; the integer is then in the low bits
  t = larger<float>(splat<float>(-100.0f), t);
  const Vec<float> shifted = t + to_integer;
  const Vec<float> f = t - (shifted - to_integer);
  Vec<float> p = f * 0.00132647271f + 0.00967151264f;
  p = p * f + 0.0555073374f;
  p = p * f + 0.240222421f;
  p = p * f + 0.693146978f;
  p = p * f + 1.0f;
  return (Vec<float>)((Vec<int32_t>)p + ((Vec<int32_t>)shifted << 23));
}

RANKSCOPE_INLINE Vec<double> exp2_nonpositive(Vec<double> t) {
  constexpr double to_integer = 0x1.8p52, ln2 = 0.693147180559945309417;
  constexpr double over_factorial[] = {
      1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
      1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
  t = larger<double>(splat<double>(-1000.0), t);
  const Vec<double> shifted = t + to_integer;
  const Vec<double> f = (t - (shifted - to_integer)) * ln2;
  Vec<double> p = splat<double>(1.0 / 6227020800.0);
  for (const double next : over_factorial) p = p * f + next;
  return (Vec<double>)((Vec<int64_t>)p + ((Vec<int64_t>)shifted << 52));
}

/// Lanes of a and b by turns: those of their lower halves (half = 0) or of their upper ones (1).
template <class V, int... I>
RANKSCOPE_INLINE V interleave(V a, V b, int half, std::integer_sequence<int, I...>) {
  constexpr int W = sizeof...(I);
  return half ? __builtin_shufflevector(a, b, (W / 2 + I / 2 + I % 2 * W)...)
              : __builtin_shufflevector(a, b, (I / 2 + I % 2 * W)...);
}

/// Rows and columns of a square of W vectors change places: log2(W) rounds, each of which interleaves row i
/// with row i + W/2.
template <int W, class V>
RANKSCOPE_INLINE void transpose(V* rows) {
  for (int round = 1; round < W; round *= 2) {
    V next[W];
    for (int i = 0; i < W / 2; ++i)
      for (int half = 0; half < 2; ++half)
        next[2 * i + half] = interleave(rows[i], rows[i + W / 2], half, std::make_integer_sequence<int, W>());
    for (int i = 0; i < W; ++i) rows[i] = next[i];
  }
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
