// Device memory for tests, and what "as exact as float allows" means: at most twice the error of the plain
// float computation against double.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/philox.h"

namespace rankscope {

/// Skips the test where no GPU is in reach.
class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "there is no CUDA device";
  }
};

template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), bytes() + sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(data_); }
  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> host(count_);
    EXPECT_EQ(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
  }

 private:
  size_t bytes() const { return count_ * sizeof(T); }
  size_t count_;
  T* data_ = nullptr;
};

/// What outputs hold before a kernel writes them: a NaN that no computation makes, found again bit by bit.
inline float poison() {
  const uint32_t bits = 0x7fc5a5a5u;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline bool is_poison(float x) {
  const float p = poison();
  return std::memcmp(&x, &p, sizeof x) == 0;
}

inline std::vector<float> random_floats(int64_t count, uint64_t seed) {
  std::vector<float> x(count);
  const Philox random{seed};
  for (int64_t i = 0; i < count; ++i) x[i] = static_cast<float>(random.normal(i));
  return x;
}

/// TF32: 10 bits behind the leading one, rounded to nearest.
inline float tf32_nearest(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x1000u) & 0xffffe000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

inline std::vector<double> widened(const std::vector<float>& x) { return {x.begin(), x.end()}; }

template <class T>
double distance(const std::vector<T>& x, const std::vector<double>& exact) {
  double sum = 0;
  for (size_t i = 0; i < exact.size(); ++i) sum += (x[i] - exact[i]) * (x[i] - exact[i]);
  return std::sqrt(sum);
}

/// ||ours - exact|| <= 2 ||plain - exact|| + the rounding of the result itself.
inline void expect_exact_as_float(const std::vector<float>& ours, const std::vector<float>& plain,
                                  const std::vector<double>& exact, const std::string& what) {
  ASSERT_EQ(ours.size(), exact.size()) << what;
  const double rounding =
      0.5 * std::numeric_limits<float>::epsilon() * distance(std::vector<double>(exact.size()), exact);
  const double error = distance(ours, exact), allowed = 2 * distance(plain, exact) + rounding;
  EXPECT_LE(error, allowed) << what << ": " << error / allowed << " of the allowed error";  // false for NaN
}

}  // namespace rankscope
