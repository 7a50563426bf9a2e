#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/vec.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

constexpr int batch = 64;

/// Always a whole batch: a loop's tail could round otherwise than its body, and a parameter's value must not
/// depend on its place in the buffer.
__attribute__((noinline)) void update_batch(const AdamWStep& rule, const float* __restrict gradient,
                                            float* __restrict parameter, float* __restrict m,
                                            float* __restrict v) {
  const AdamWStep r = rule;
#pragma GCC ivdep
  for (int i = 0; i < batch; ++i) {
    const float g = gradient[i];
    m[i] = r.beta1 * m[i] + r.one_minus_beta1 * g;
    v[i] = r.beta2 * v[i] + r.one_minus_beta2 * (g * g);
    parameter[i] = r.keep * parameter[i] - r.rate * m[i] / (root(v[i]) * r.root_correction + r.epsilon);
  }
}

}  // namespace

void adamw_update(const AdamWStep& rule, int64_t count, const float* gradient, float* parameter, float* m,
                  float* v) {
  int64_t i = 0;
  for (; i + batch <= count; i += batch) update_batch(rule, gradient + i, parameter + i, m + i, v + i);
  const int64_t left = count - i;
  if (left == 0) return;
  float part[4][batch] = {};
  for (int64_t x = 0; x < left; ++x)
    part[0][x] = gradient[i + x], part[1][x] = parameter[i + x], part[2][x] = m[i + x], part[3][x] = v[i + x];
  update_batch(rule, part[0], part[1], part[2], part[3]);
  for (int64_t x = 0; x < left; ++x)
    parameter[i + x] = part[1][x], m[i + x] = part[2][x], v[i + x] = part[3][x];
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
