// Makes the tensors that lenses return (lenses/lens.h): everything is NaN, not defined, until it is set.
#pragma once

#include <cstdint>
#include <vector>

#include "base/table.h"
#include "base/tensor_fwd.h"

namespace rankscope {

/// Of one view: [rules, samples, heads + 1, metrics].
class Numbers {
 public:
  Numbers(int64_t samples, int64_t heads, size_t metrics, int64_t rules = 1)
      : rules_(rules),
        samples_(samples),
        slots_(heads + 1),
        metrics_(static_cast<int64_t>(metrics)),
        values_(static_cast<size_t>(rules_ * samples_ * slots_ * metrics_), kNone) {}

  /// The metrics of one head, one behind another.
  double* of(int64_t sample, int64_t head, int64_t rule = 0) {
    return values_.data() + ((rule * samples_ + sample) * slots_ + head) * metrics_;
  }
  /// The same of all heads together.
  double* of(int64_t sample) { return of(sample, slots_ - 1); }
  at::Tensor tensor() const;

 private:
  int64_t rules_, samples_, slots_, metrics_;
  std::vector<double> values_;
};

/// Of a whole site: [heads + 1, metrics, 3].
class Totals {
 public:
  Totals(int64_t heads, size_t metrics)
      : slots_(heads + 1),
        metrics_(static_cast<int64_t>(metrics)),
        values_(static_cast<size_t>(slots_ * metrics_ * 3), kNone) {}

  void set(int64_t head, size_t metric, double value, double stderr_, int64_t n) {
    double* at = values_.data() + (head * metrics_ + static_cast<int64_t>(metric)) * 3;
    at[0] = value, at[1] = stderr_, at[2] = static_cast<double>(n);
  }
  /// Of all heads together.
  void set(size_t metric, double value, double stderr_, int64_t n) {
    set(slots_ - 1, metric, value, stderr_, n);
  }
  at::Tensor tensor() const;

 private:
  int64_t slots_, metrics_;
  std::vector<double> values_;
};

/// Rows of one length as one tensor; undefined where there are none, or where their lengths differ.
at::Tensor stacked(const std::vector<std::vector<double>>& rows);

}  // namespace rankscope
