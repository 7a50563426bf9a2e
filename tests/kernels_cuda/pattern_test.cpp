// Against plain loops in double precision.
#include "kernels/cuda/pattern.h"

#include <algorithm>
#include <cstdlib>

#include "device.h"

namespace rankscope {
namespace {

class CudaPattern : public OnDevice {};

struct Sums {
  std::vector<double> entropy, received;  // [matrices], [matrices, keys]
};

bool seen(const cuda::PatternTile& t, int64_t query, int64_t key) {
  return (!t.causal || key <= query) && (t.window == 0 || std::abs(key - query) < t.window);
}

std::vector<float> random_pattern(const cuda::PatternTile& t) {
  const Philox random{5, 0, 0};
  std::vector<float> p(t.matrices * t.rows * t.keys, 0.0f);
  for (int64_t m = 0; m < t.matrices; ++m)
    for (int64_t r = 0; r < t.rows; ++r) {
      float* row = p.data() + (m * t.rows + r) * t.keys;
      double sum = 0;
      for (int64_t j = 0; j < t.keys; ++j)
        if (seen(t, t.first_row + r, j)) {
          row[j] = static_cast<float>(std::exp(4 * random.uniform((m * t.rows + r) * t.keys + j)));
          sum += row[j];
        }
      for (int64_t j = 0; j < t.keys; ++j) row[j] = static_cast<float>(row[j] / sum);
    }
  return p;
}

Sums plain(const cuda::PatternTile& t, const std::vector<float>& p) {
  Sums out{std::vector<double>(t.matrices, 0.0), std::vector<double>(t.matrices * t.keys, 0.0)};
  for (int64_t m = 0; m < t.matrices; ++m)
    for (int64_t r = 0; r < t.rows; ++r) {
      int64_t keys = 0;
      double entropy = 0;
      for (int64_t j = 0; j < t.keys; ++j) {
        if (!seen(t, t.first_row + r, j)) continue;
        const double a = p[(m * t.rows + r) * t.keys + j];
        ++keys;
        out.received[m * t.keys + j] += a;
        if (a > 0) entropy -= a * std::log(a);
      }
      if (keys > 1) out.entropy[m] += entropy / std::log(static_cast<double>(keys));
    }
  return out;
}

Sums fused(const cuda::PatternTile& t, const std::vector<float>& p) {
  const int64_t segments = cuda::pattern_segments(t);
  const DeviceBuffer<float> pattern(p);
  const DeviceBuffer<double> entropy(std::vector<double>(t.matrices * segments, NAN)),
      received(std::vector<double>(t.matrices * segments * t.keys, NAN));
  cuda::pattern_sums(t, pattern.data(), entropy.data(), received.data(), nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const std::vector<double> e = entropy.values(), c = received.values();
  Sums out{std::vector<double>(t.matrices, 0.0), std::vector<double>(t.matrices * t.keys, 0.0)};
  for (int64_t m = 0; m < t.matrices; ++m)
    for (int64_t s = 0; s < segments; ++s) {
      out.entropy[m] += e[m * segments + s];
      for (int64_t j = 0; j < t.keys; ++j) out.received[m * t.keys + j] += c[(m * segments + s) * t.keys + j];
    }
  return out;
}

TEST_F(CudaPattern, SumsAreThoseOfPlainLoopsUnderEveryMask) {
  for (const cuda::PatternTile& t :
       {cuda::PatternTile{3, 7, 7}, cuda::PatternTile{2, 128, 128, 0, true},
        cuda::PatternTile{2, 65, 300, 100, true}, cuda::PatternTile{2, 200, 200, 0, true, 17},
        cuda::PatternTile{1, 1, 1}, cuda::PatternTile{2, 64, 513, 0, false}, cuda::PatternTile{1, 5, 3}}) {
    const std::vector<float> p = random_pattern(t);
    const Sums a = plain(t, p), b = fused(t, p);
    // p log p is rounded to float once more after two roundings inside logf; a row's terms sum to log(keys).
    const double each = 4 * 0x1p-24, rows = static_cast<double>(t.rows);
    for (size_t i = 0; i < a.entropy.size(); ++i) EXPECT_NEAR(a.entropy[i], b.entropy[i], each * rows);
    // Both add doubles: rows roundings of a sum that is at most rows.
    for (size_t i = 0; i < a.received.size(); ++i)
      EXPECT_NEAR(a.received[i], b.received[i], rows * rows * 0x1p-52);
  }
}

}  // namespace
}  // namespace rankscope
