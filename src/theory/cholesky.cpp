#include "theory/cholesky.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "theory/kernel_tiles.h"

namespace rankscope {
namespace {

constexpr int64_t kPanel = 64;

// The square block at `at` in place, then the rows below it against it.
bool factor_panel(double* a, int64_t n, int64_t at, int64_t width) {
  for (int64_t i = at; i < n; ++i) {
    double* row = a + i * n;
    for (int64_t j = at; j < std::min(at + width, i + 1); ++j) {
      const double* other = a + j * n;
      double sum = row[j];
      for (int64_t k = at; k < j; ++k) sum -= row[k] * other[k];
      if (i != j) {
        row[j] = sum / other[j];
      } else if (sum > 0) {
        row[j] = std::sqrt(sum);
      } else {
        return false;
      }
    }
  }
  return true;
}

// Takes the panel's part off everything right of it, tile by tile.
void update_rest(double* a, int64_t n, int64_t at, int64_t width) {
  std::vector<double> columns(static_cast<size_t>(width * kTile));
  std::vector<double> last(static_cast<size_t>(kStripRows * width));
  double product[kStripRows * kTile];
  for (int64_t column = at + width; column < n; column += kTile) {
    const int64_t wide = std::min(kTile, n - column);
    transpose_block(a + column * n + at, n, wide, width, columns.data());
    for (int64_t row = column; row < n; row += kStripRows) {
      const int64_t high = std::min(kStripRows, n - row);
      if (high == kStripRows) {
        strip_product(a + row * n + at, n, width, columns.data(), product);
      } else {  // fewer rows than a strip: the rest of it is zero
        std::fill(last.begin(), last.end(), 0.0);
        for (int64_t i = 0; i < high; ++i)
          std::copy_n(a + (row + i) * n + at, width, last.data() + i * width);
        strip_product(last.data(), width, width, columns.data(), product);
      }
      for (int64_t i = 0; i < high; ++i)
        for (int64_t j = 0; j < std::min(wide, row + i - column + 1); ++j)
          a[(row + i) * n + column + j] -= product[i * kTile + j];
    }
  }
}

}  // namespace

bool cholesky(double* a, int64_t n) {
  for (int64_t at = 0; at < n; at += kPanel) {
    const int64_t width = std::min(kPanel, n - at);
    if (!factor_panel(a, n, at, width)) return false;
    update_rest(a, n, at, width);
  }
  return true;
}

void cholesky_solve(const double* l, int64_t n, double* x) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < i; ++k) x[i] -= l[i * n + k] * x[k];
    x[i] /= l[i * n + i];
  }
  for (int64_t i = n; i-- > 0;) {
    x[i] /= l[i * n + i];
    for (int64_t k = 0; k < i; ++k) x[k] -= l[i * n + k] * x[i];
  }
}

}  // namespace rankscope
