#include "kernels/cpu/small_spectra.h"

#include <algorithm>
#include <limits>

namespace rankscope {

bool small_spectra_fit(int64_t rows, int64_t cols) {
  constexpr int64_t lanes = 8, cache = 5 << 18;  // bytes: 128 x 128 takes half a megabyte
  return rows > 0 && cols > 0 && rows <= cache && cols <= cache &&
         (rows + 1) * cols * lanes * static_cast<int64_t>(sizeof(float)) <= cache;
}

double small_spectra_error(int64_t rows, int64_t cols) {
  return static_cast<double>(std::numeric_limits<float>::epsilon()) *
         (8.0 + static_cast<double>(std::max(rows, cols)) / 3.0);
}

}  // namespace rankscope
