#include "kernels/normals_math.h"

#include "kernels/cpu/simd/kernels.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

constexpr int batch = 64;  // counters at a time

/// The 4 * batch normals of the counters from `counter` on. Always whole batches, so that no element is ever
/// computed by a loop's tail with another rounding.
__attribute__((noinline)) void fill_batch(uint64_t seed, uint32_t stream, uint32_t step, uint64_t counter,
                                          float* __restrict out) {
  float lane[4][batch];
#pragma GCC ivdep
  for (int i = 0; i < batch; ++i) {
    const Normals4 n = box_muller(philox_words(seed, stream, step, counter + static_cast<uint64_t>(i)));
    lane[0][i] = n.n0, lane[1][i] = n.n1, lane[2][i] = n.n2, lane[3][i] = n.n3;
  }
#pragma GCC ivdep
  for (int i = 0; i < batch; ++i)
    for (int l = 0; l < 4; ++l) out[4 * i + l] = lane[l][i];
}

}  // namespace

void fill_normals(uint64_t seed, uint32_t stream, uint32_t step, uint64_t first, int64_t count, float* out) {
  float part[4 * batch];
  while (count > 0) {
    const int64_t skip = static_cast<int64_t>(first % 4);
    if (skip == 0 && count >= 4 * batch) {
      fill_batch(seed, stream, step, first / 4, out);
      first += 4 * batch, count -= 4 * batch, out += 4 * batch;
    } else {
      fill_batch(seed, stream, step, first / 4, part);
      const int64_t taken = count < 4 * batch - skip ? count : 4 * batch - skip;
      for (int64_t i = 0; i < taken; ++i) out[i] = part[skip + i];
      first += static_cast<uint64_t>(taken), count -= taken, out += taken;
    }
  }
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
