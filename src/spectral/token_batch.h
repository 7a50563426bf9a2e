// Spectra of the tokens of many samples, plain and centred, by the Gram route of rows.h. Each Gram matrix is
// reduced to tridiagonal form alone; their eigenvalues are then found together, one matrix per SIMD lane.
//
// One reduction serves both. With R = X - 1 mean^T and r = R mean, X X^T has the eigenvalues of
//   [ m |mean|^2    sqrt(m) r^T ]
//   [ sqrt(m) r     R R^T       ]   and a zero,
// so reducing this leaves a tridiagonal matrix whose part without the first row belongs to R alone. Where
// there are more tokens than channels, R^T R + m mean mean^T takes its place: bordered by the mean, R^T R
// becomes a tridiagonal matrix whose first entry is all that m |mean|^2 is added to.
#pragma once

#include <cstdint>
#include <vector>

#include "spectral/rows.h"

namespace rankscope {

class TokenSpectraBatch {
 public:
  explicit TokenSpectraBatch(size_t slots) : slots_(slots) {}

  /// The centred rows R [m, n] of one sample and their mean [n]; without a mean only `centered` is found.
  /// Different slots may be filled by different threads.
  void add(size_t slot, const double* centered, const double* mean, int64_t m, int64_t n, double epsilon);
  /// After the last add, once.
  void compute();
  const TokenSpectra& of(size_t slot) const { return slots_[slot].found; }

 private:
  struct Slot {
    TokenSpectra found;
    int64_t m = 0, n = 0;
    double epsilon = 0;
    bool open = false, with_mean = false;
    double mean_square = 0;    // to be added to the first entry of R^T R
    std::vector<double> d, e;  // the tridiagonal matrix
  };
  struct Lane;
  void solve(Lane* lanes, size_t count);

  std::vector<Slot> slots_;
};

}  // namespace rankscope
