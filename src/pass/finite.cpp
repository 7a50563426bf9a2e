#include "pass/finite.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tensors/torch_compat.h"

namespace rankscope {

at::Tensor not_finite_flag(const at::Tensor& x, const TilePlace& place) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // The largest absolute entry of a row is finite only if all are, and no sum can overflow on the way.
  const at::Tensor rows = (place.queries > 0 ? at::linalg_vector_norm(x, kInfinity, at::IntArrayRef({1, 3}))
                                             : at::linalg_vector_norm(x, kInfinity, at::IntArrayRef({1})))
                              .flatten();
  const int64_t none = rows.numel();
  const at::Tensor number = at::arange(none, rows.options().dtype(at::kDouble));
  const at::Tensor first = at::where(rows.isfinite(), at::full_like(number, none), number).min();
  return at::where(first == none, at::full_like(first, -1), first);
}

void watch_finite(const at::Tensor& x, const TilePlace& place, Crossing& crossing,
                  std::function<void(int64_t)> found) {
  if (crossing.late(x))
    crossing.add(not_finite_flag(x, place), [found = std::move(found)](const double* row) {
      if (*row >= 0) found(static_cast<int64_t>(*row));
    });
  else if (!all_finite(x))
    found(static_cast<int64_t>(not_finite_flag(x, place).item<double>()));
}

std::string token_of(const Batch& batch, const TilePlace& place, int64_t row) {
  // Tiles are of several whole samples, or of some rows of one.
  int64_t sample = place.first_sample, token = place.first_row + row;
  if (place.queries > 0) {
    sample += row / place.queries;
    token %= place.queries;
  } else {
    sample = std::upper_bound(batch.offsets.begin(), batch.offsets.end(), row) - batch.offsets.begin() - 1;
    token -= batch.offsets[static_cast<size_t>(sample)];
  }
  return fmt::format("sample {}, token {}", batch.samples[static_cast<size_t>(sample)], token);
}

}  // namespace rankscope
