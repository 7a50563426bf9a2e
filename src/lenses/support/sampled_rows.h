// Two disjoint groups of rows of matrices that are too long for a whole spectrum, collected as the tiles go
// by. The rows depend on the seed, the sample and the length alone: every layer, head and variant is read at
// the same ones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/tensor_fwd.h"

namespace rankscope {

constexpr int64_t kGroupRows = 256;
constexpr int64_t kGroups = 2;
constexpr int64_t kLongestWhole = 512;  // longer attention matrices are read through sampled rows

/// kGroups disjoint sets of kGroupRows row numbers below `length`, each ascending.
std::array<std::vector<int64_t>, kGroups> draw_rows(uint64_t seed, int64_t sample, int64_t length);

class SampledRows {
 public:
  SampledRows(uint64_t seed, int64_t sample, int64_t length);
  ~SampledRows();
  SampledRows(SampledRows&&) noexcept;
  SampledRows& operator=(SampledRows&&) noexcept;

  /// Rows first_row.. of every head: tile [heads, rows, length].
  void add(const at::Tensor& tile, int64_t first_row);
  /// [heads, kGroupRows, length] in the tiles' dtype: on the host, or where the tiles stay on their device.
  const at::Tensor& group(int64_t g) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankscope
