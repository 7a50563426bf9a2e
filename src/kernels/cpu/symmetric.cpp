#include "kernels/cpu/symmetric.h"

namespace rankscope {

bool tridiagonal_fits(int64_t n) {
  // Beside dsyevd, on one core with AVX-512: 10 ms for 513, where that takes 13 with products of the same set
  // and 21 without; 47 ms for 769, 38 and 65. Where two spectra come of one reduction dsyevd is needed twice.
  constexpr int64_t most = 800;
  return n <= most;
}

}  // namespace rankscope
