#include "theory/kernel_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "kernels/cpu/isa.h"

namespace rankscope {
namespace {

// asin(s) = s + s z (c_1 + c_2 z + ...), z = s^2 <= 1/4, c_k = C(2k, k) / (4^k (2k + 1)): with 24 terms the
// rest is below 1e-17.
constexpr size_t kTerms = 24;
constexpr std::array<double, kTerms> arcsine_series() {
  std::array<double, kTerms> c{};
  double binomial = 1;
  for (size_t k = 1; k <= kTerms; ++k) {
    binomial *= static_cast<double>(2 * k - 1) / static_cast<double>(2 * k);
    c[k - 1] = binomial / static_cast<double>(2 * k + 1);
  }
  return c;
}
constexpr std::array<double, kTerms> kSeries = arcsine_series();

// Horner's rule written out: a loop inside would keep the compiler from working on several arguments at once.
template <size_t... k>
inline __attribute__((always_inline)) double arcsine_sum(double z, std::index_sequence<k...>) {
  double sum = 0;
  ((sum = sum * z + kSeries[kTerms - 1 - k]), ...);
  return sum;
}

}  // namespace

RANKSCOPE_CLONES void strip_product(const double* rows, int64_t depth, const double* columns, double* out) {
  constexpr int64_t kLanes = 8;
  for (int64_t j = 0; j < kTile; j += kLanes) {
    double sum[kStripRows][kLanes] = {};
    for (int64_t t = 0; t < depth; ++t) {
      const double* c = columns + t * kTile + j;
      for (int64_t i = 0; i < kStripRows; ++i) {
        const double a = rows[i * depth + t];
#pragma omp simd
        for (int64_t l = 0; l < kLanes; ++l) sum[i][l] += a * c[l];
      }
    }
    for (int64_t i = 0; i < kStripRows; ++i) std::copy(sum[i], sum[i] + kLanes, out + i * kTile + j);
  }
}

RANKSCOPE_CLONES void arcsines(double* x, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const double a = std::fabs(x[i]);
    const bool large = a > 0.5;  // then pi/2 - 2 asin sqrt((1 - a) / 2)
    const double half = (1 - a) / 2;
    const double z = large ? (half > 0 ? half : 0) : a * a;
    const double s = std::sqrt(z);
    const double sum = arcsine_sum(z, std::make_index_sequence<kTerms>{});
    const double value = s + s * z * sum;
    x[i] = std::copysign(large ? std::numbers::pi / 2 - 2 * value : value, x[i]);
  }
}

RANKSCOPE_CLONES void symmetric_tile(const float* s, const double* x_rows, const double* x_columns,
                                     double* row_out, double* column_out) {
  for (int64_t i = 0; i < kTile; ++i, s += kTile) {
    const double x = x_rows[i];
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < kTile; ++j) {
      const double v = s[j];
      sum += v * x_columns[j];
      column_out[j] += v * x;
    }
    row_out[i] += sum;
  }
}

RANKSCOPE_CLONES void plain_tile(const float* s, const double* x, double* row_out) {
  for (int64_t i = 0; i < kTile; ++i, s += kTile) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < kTile; ++j) sum += static_cast<double>(s[j]) * x[j];
    row_out[i] += sum;
  }
}

}  // namespace rankscope
