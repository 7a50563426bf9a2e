// Which keys a query may see.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rankscope {

struct Mask {
  int64_t length;  // keys
  bool causal;
  int64_t window;  // 0: none; otherwise only keys less than this far away
  int64_t queries = length;
  auto operator<=>(const Mask&) const = default;

  /// Query i sees keys first_key(i) .. end_key(i) - 1.
  int64_t first_key(int64_t i) const { return window > 0 ? std::max<int64_t>(0, i - window + 1) : 0; }
  int64_t end_key(int64_t i) const {
    return causal ? i + 1 : window > 0 ? std::min(length, i + window) : length;
  }
  int64_t keys(int64_t i) const { return end_key(i) - first_key(i); }

  /// Key j is seen by queries first_query(j) .. end_query(j) - 1.
  int64_t first_query(int64_t j) const {
    return causal ? j : window > 0 ? std::max<int64_t>(0, j - window + 1) : 0;
  }
  int64_t end_query(int64_t j) const { return window > 0 ? std::min(queries, j + window) : queries; }
};

}  // namespace rankscope
