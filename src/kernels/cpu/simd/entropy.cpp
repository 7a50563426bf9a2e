#include "kernels/cpu/entropy.h"

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/vec.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

constexpr int W = lanes<double>;
using V = Vec<double>;
using Narrow = Vec<float, W>;
using Bits = Vec<int32_t, W>;

// p log p; 0 for p that is zero, subnormal, negative or NaN. p = 2^k m with m in [sqrt(1/2), sqrt(2)), and
// log m = 2 artanh(s), s = (m - 1) / (m + 1): |s| <= 0.172, so eleven terms of the series leave 1e-17.
RANKSCOPE_INLINE V plogp(Narrow p) {
  constexpr double ln2 = 0.693147180559945309417;
  constexpr float smallest_normal = 0x1p-126f;
  constexpr int32_t root_half = 0x3f3504f3;  // bits of sqrt(1/2)
  const auto counts = p >= smallest_normal;
  const Narrow x = counts ? p : splat<float, W>(1.0f);
  const Bits k = ((Bits)x - root_half) >> 23;
  const V m = __builtin_convertvector((Narrow)((Bits)x - (k << 23)), V);
  const V s = (m - 1.0) / (m + 1.0), q = s * s;
  V series = splat<double>(1.0 / 21);
  for (int odd = 19; odd >= 1; odd -= 2) series = series * q + 1.0 / odd;
  const V logarithm = __builtin_convertvector(k, V) * ln2 + 2.0 * s * series;
  return __builtin_convertvector(x, V) * logarithm;  // x = 1 where p does not count: nothing
}

}  // namespace

double row_entropy(const float* p, int64_t n) {
  V sums[2] = {};
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    sums[0] -= plogp(load<float, W>(p + i));
    sums[1] -= plogp(load<float, W>(p + i + W));
  }
  for (; i < n; i += W) {
    float rest[W] = {};
    for (int w = 0; w < W && i + w < n; ++w) rest[w] = p[i + w];
    sums[0] -= plogp(load<float, W>(rest));
  }
  sums[0] += sums[1];
  double sum = 0;
  for (int w = 0; w < W; ++w) sum += sums[0][w];
  return sum;
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
