// What is reached without selecting, and what a single full-rank head reaches at a finite temperature. All
// errors are mean squared norms; the target has norm one, so predicting zero costs 1.
//
// Three settings:
//   nearest      a query y, uniform on the sphere, looks for its nearest among N orthonormal points;
//   independent  the same among N independent points, each uniform on the sphere (for its farthest the
//                numbers are the same);
//   farthest     self-attention: N independent uniform points, each looks for the one farthest from it.
#pragma once

#include <cstdint>

#include "base/stats.h"

namespace rankscope {

/// Best scalar times the mean of the points, for `nearest`: 1 - 1/N.
double nearest_floor(int64_t n);

/// The same for `independent`: the sum has a mean square of N, and <x_i*, sum> the mean 1 + E m X
/// (limits.cpp).
double independent_floor(int64_t d, int64_t n);

struct FarthestFloors {
  double mean_of_tokens;  // best b sum_j x_j
  double no_selection;    // best a x_i + b sum_j x_j: all a layer can do without looking at scores
};

/// For `farthest`, N >= 2: one-dimensional integrals over the order statistics of the N - 1 cosines. To 1e-9
/// of the floor, however small, for d to 65536 and N to a million; so are the coefficients below.
FarthestFloors farthest_floors(int64_t d, int64_t n);

/// One random rank-1 hard head with the best scalar weight, two orthonormal points, nearest: 1 - E b^2.
double one_hard_head_error(int64_t d);

/// Error of one full-rank head with W_Q^T W_K = beta I on two orthonormal points:
/// E 2 sigma(-beta |<x_1-x_2,y>|)^2.
double soft_nearest_error(int64_t d, double beta);

/// beta times the error as beta grows: only the two best points matter then, and only where they tie. For two
/// orthonormal points this is 4 (ln 2 - 1/2) / sqrt(4 pi) sqrt(d) = 0.2179 sqrt(d) in the limit of large d.
double nearest_temperature_coefficient(int64_t d, int64_t n);
double independent_temperature_coefficient(int64_t d, int64_t n);
double farthest_temperature_coefficient(int64_t d, int64_t n);

/// Error of one full-rank head with W_Q^T W_K = -beta I for `farthest`, by Monte Carlo over the cosines: the
/// rest is integrated out. A function of the seed, whatever the machine.
Estimate soft_farthest_error(int64_t d, int64_t n, double beta, int64_t samples, uint64_t seed);

}  // namespace rankscope
