// The bits of a non-negative float order as its value does, so the k-th smallest is found by counting: first
// the upper 16 bits of all, then the lower 16 of those that share the winner's upper half. Two passes, no
// copy.
#include "kernels/cpu/select.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace rankscope::kernels {
namespace {

constexpr uint32_t kSign = 0x7fffffffu;
constexpr uint32_t kInfinity = 0x7f800000u;

struct Place {
  uint32_t bucket;
  int64_t before;  // numbers in earlier buckets
};

Place find(const std::vector<uint32_t>& counts, int64_t k) {
  int64_t before = 0;
  uint32_t bucket = 0;
  while (before + counts[bucket] <= k) before += counts[bucket++];
  return {bucket, before};
}

float kth(const float* x, int64_t count, int64_t k, const std::vector<uint32_t>& high) {
  const Place upper = find(high, k);
  thread_local std::vector<uint32_t> low;
  low.assign(1u << 16, 0);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & kSign;
    if (bits >> 16 == upper.bucket) ++low[bits & 0xffffu];
  }
  return std::bit_cast<float>(upper.bucket << 16 | find(low, k - upper.before).bucket);
}

}  // namespace

double median_magnitude(const float* x, int64_t count) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (count == 0) return kNan;
  thread_local std::vector<uint32_t> high;
  high.assign(1u << 15, 0);
  bool nan = false;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & kSign;
    nan |= bits > kInfinity;
    ++high[bits >> 16];
  }
  if (nan) return kNan;
  const double upper = kth(x, count, count / 2, high);
  if (count % 2 == 1) return upper;
  return 0.5 * (upper + static_cast<double>(kth(x, count, count / 2 - 1, high)));
}

double median_magnitude(const double* x, int64_t count) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (count == 0) return kNan;
  std::vector<double> v(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(x[i])) return kNan;
    v[static_cast<size_t>(i)] = std::fabs(x[i]);
  }
  const auto middle = v.begin() + count / 2;
  std::nth_element(v.begin(), middle, v.end());
  if (count % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(v.begin(), middle));
}

}  // namespace rankscope::kernels
