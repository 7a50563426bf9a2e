#include "kernels/cpu/symmetric.h"

namespace rankscope {

bool tridiagonal_fits(int64_t n) {
  constexpr int64_t most = 360;  // n^2 doubles are a megabyte
  return n <= most;
}

}  // namespace rankscope
