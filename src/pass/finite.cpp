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
double largest_allowed(const at::Tensor& x, const TilePlace& place) {
  const double most = x.scalar_type() == at::kDouble ? std::numeric_limits<double>::max()
                                                     : static_cast<double>(std::numeric_limits<float>::max());
  return place.queries > 0 ? most : std::sqrt(most / static_cast<double>(std::max<int64_t>(1, x.size(1))));
}

bool all_well(const at::Tensor& x, const TilePlace& place) {
  if (place.queries > 0 || x.numel() == 0) return all_finite(x);
  return at::linalg_vector_norm(x, kInfinity).item<double>() <= largest_allowed(x, place);
}

}  // namespace

at::Tensor largest_of_rows(const at::Tensor& x, const TilePlace& place) {
  return place.queries > 0 ? at::linalg_vector_norm(x, kInfinity, at::IntArrayRef({1, 3})).flatten()
                           : at::linalg_vector_norm(x, kInfinity, at::IntArrayRef({1}));
}

void watch_finite(const at::Tensor& x, const TilePlace& place, Crossing& crossing,
                  std::function<void(int64_t)> found) {
  if (!crossing.late(x) && all_well(x, place)) return;
  const at::Tensor largest = largest_of_rows(x, place);
  const auto look = [found = std::move(found), rows = largest.numel(),
                     most = largest_allowed(x, place)](const double* of_row) {
    const double* bad = std::find_if(of_row, of_row + rows, [&](double v) { return !(v <= most); });
    if (bad != of_row + rows) found(bad - of_row);
  };
  if (crossing.late(x))
    crossing.add(largest, look);
  else
    look(largest.to(at::kDouble).contiguous().data_ptr<double>());
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
