#include "pass/finite.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensors/torch_compat.h"

namespace rankscope {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A norm divides by the root of the squares of a row: where they overflow it gives zeros, and zeros have a
// rank. They cannot while the square of the largest, as often as the row is long, does not.
at::Tensor most_of_squares(const at::Tensor& largest, const at::Tensor& x) {
  return largest.square().mul(static_cast<double>(x.size(1)));
}

bool all_well(const at::Tensor& x, const TilePlace& place) {
  if (place.queries > 0 || x.numel() == 0) return all_finite(x);
  return std::isfinite(most_of_squares(at::linalg_vector_norm(x, kInfinity), x).item<double>());
}

}  // namespace

at::Tensor not_finite_flag(const at::Tensor& x, const TilePlace& place) {
  // The largest absolute entry of a row is finite only if all are, and no sum can overflow on the way.
  const at::Tensor rows =
      place.queries > 0 ? at::linalg_vector_norm(x, kInfinity, at::IntArrayRef({1, 3})).flatten()
                        : most_of_squares(at::linalg_vector_norm(x, kInfinity, at::IntArrayRef({1})), x);
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
  else if (!all_well(x, place))
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
