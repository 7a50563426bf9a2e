#include "theory/kernel_matrix.h"

#include <algorithm>
#include <atomic>
#include <numbers>
#include <numeric>
#include <thread>

#include "theory/kernel.h"
#include "theory/kernel_tiles.h"

namespace rankscope {
namespace {

constexpr size_t kTileSize = kTile * kTile;

std::vector<double> columns_of(const std::vector<double>& rows, int64_t d, int64_t blocks) {
  std::vector<double> out(static_cast<size_t>(blocks * d * kTile));
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t i = 0; i < kTile; ++i)
      for (int64_t t = 0; t < d; ++t)
        out[static_cast<size_t>((b * d + t) * kTile + i)] =
            rows[static_cast<size_t>((b * kTile + i) * d + t)];
  return out;
}

// A length within rounding of one: asin is steep there, and the diagonal is exact.
double diagonal_entry(double squared_length) {
  constexpr double kRounding = 1e-12;
  return heads_agree(1, squared_length > 1 - kRounding ? 1 : squared_length) - 0.5;
}

}  // namespace

// Hands tiles to the threads; job(index) may run on any of them.
template <class Job>
void KernelMatrix::over_tiles(const Job& job) const {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < order_.size(); i = next++) job(i);
  };
  std::vector<std::jthread> others;
  for (int t = 1; t < std::min(threads_, static_cast<int>(order_.size())); ++t) others.emplace_back(work);
  work();
}

KernelMatrix::KernelMatrix(const Heads& heads, int threads, size_t memory)
    : d_(heads.d), count_(heads.count), blocks_((heads.count + kTile - 1) / kTile), threads_(threads) {
  if (threads_ <= 0) threads_ = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const auto padded = static_cast<size_t>(blocks_ * kTile * d_);
  q_ = heads.q;
  k_ = heads.k;
  q_.resize(padded);
  k_.resize(padded);
  q_columns_ = columns_of(q_, d_, blocks_);
  k_columns_ = columns_of(k_, d_, blocks_);
  for (int64_t h = 0; h < count_; ++h) {
    const double* k = k_.data() + h * d_;
    diagonal_.push_back(diagonal_entry(std::inner_product(k, k + d_, k, 0.0)));
  }
  for (int64_t row = 0; row < blocks_; ++row)
    for (int64_t column = 0; column <= row; ++column) order_.push_back({row, column});
  if (order_.size() * kTileSize * sizeof(float) > memory) return;
  tiles_.resize(order_.size() * kTileSize);
  over_tiles([this](size_t i) { compute(order_[i], tiles_.data() + i * kTileSize); });
}

void KernelMatrix::compute(const Tile& tile, float* out) const {
  constexpr double kScale = 2 / (std::numbers::pi * std::numbers::pi);
  double queries[kStripRows * kTile], keys[kStripRows * kTile];
  for (int64_t i = 0; i < kTile; i += kStripRows) {
    const int64_t row = tile.row * kTile + i;
    strip_product(q_.data() + row * d_, d_, q_columns_.data() + tile.column * d_ * kTile, queries);
    strip_product(k_.data() + row * d_, d_, k_columns_.data() + tile.column * d_ * kTile, keys);
    arcsines(queries, kStripRows * kTile);
    arcsines(keys, kStripRows * kTile);
    for (int64_t j = 0; j < kStripRows * kTile; ++j)
      out[i * kTile + j] = static_cast<float>(kScale * queries[j] * keys[j]);
  }
  if (tile.row != tile.column) return;
  const int64_t first = tile.row * kTile;
  for (int64_t i = 0; i < std::min(kTile, count_ - first); ++i)
    out[i * kTile + i] = static_cast<float>(diagonal_[static_cast<size_t>(first + i)]);
}

std::vector<double> KernelMatrix::multiply(const std::vector<double>& x) const {
  std::vector<double> padded = x;
  padded.resize(static_cast<size_t>(blocks_ * kTile));
  // What each tile adds to its rows and to its columns, summed in the order of tiles afterwards.
  std::vector<double> parts(order_.size() * 2 * kTile);
  over_tiles([&](size_t i) {
    thread_local std::vector<float> scratch;
    const float* s = tiles_.data() + i * kTileSize;
    if (!stored()) {
      scratch.resize(kTileSize);
      compute(order_[i], scratch.data());
      s = scratch.data();
    }
    double* part = parts.data() + i * 2 * kTile;
    const double* x_rows = padded.data() + order_[i].row * kTile;
    const double* x_columns = padded.data() + order_[i].column * kTile;
    if (order_[i].row == order_[i].column)
      plain_tile(s, x_columns, part);
    else
      symmetric_tile(s, x_rows, x_columns, part, part + kTile);
  });
  std::vector<double> y(padded.size(), 0.5 * std::accumulate(x.begin(), x.end(), 0.0));
  for (size_t i = 0; i < order_.size(); ++i) {
    const double* part = parts.data() + i * 2 * kTile;
    double* rows = y.data() + order_[i].row * kTile;
    double* columns = y.data() + order_[i].column * kTile;
    for (int64_t j = 0; j < kTile; ++j) rows[j] += part[j];
    for (int64_t j = 0; j < kTile; ++j) columns[j] += part[kTile + j];
  }
  y.resize(static_cast<size_t>(count_));
  return y;
}

}  // namespace rankscope
