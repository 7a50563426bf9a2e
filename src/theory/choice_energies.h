// How the nearest of N orthonormal points depends on the query, degree by degree: the constants behind the
// lower bound for more than two points (docs/BOUND.md has the theorem and its proof).
//
// For points X, y -> x_{i*(y)}, i*(y) = argmax <x_i, y>, is a function on the sphere of R^d. Its energy in
// degree l, averaged over X, is
//
//   W_l = N(d, l) E P_l(<y, y'>) <x_{i*(y)}, x_{i*(y')}> ,   W_0 = 1/N,   sum_l W_l = 1.
//
// No sampling: for Gaussian y with correlated coordinates the chance of the same choice is an integral over
// two numbers, N phi_2(a, b) Phi_2(a, b)^(N-1), whose power series in the correlation has as coefficients the
// energies S_k by Hermite degree; and S_k = sum over l <= k of c_{k,l}(d) W_l with known c, a triangular
// system.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope {

struct ChoiceEnergies {
  std::vector<double> energy;  // W_0, W_1, ... as far as they are known; the rest to one lies above
  std::vector<double> error;   // of each: of quadrature and rounding, carried through the system
};

/// 2 <= n <= d. At most 33 degrees; fewer where rounding would pass 1e-6, as in few dimensions.
ChoiceEnergies choice_energies(int64_t d, int64_t n);

}  // namespace rankscope
