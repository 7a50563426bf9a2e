// Spherical harmonics of the sign kernel sgn<w, y> on the unit sphere of R^d: the constants behind every
// certificate. All closed forms; d >= 2 and degrees l >= 0 throughout.
//
// With two orthonormal points and w = (x_1 - x_2)/sqrt(2), the nearest of them to y is
// (x_1 + x_2)/2 + sgn<w, y> (x_1 - x_2)/2, so what an attention layer must learn is the sign kernel. It has
// energy eta_l^2 in degree l, none in even degrees, and the energies sum to one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/special.h"

namespace rankscope {

/// Logarithm of N(d, l), the dimension of the harmonics of degree l.
double log_harmonic_count(int64_t d, int64_t l);

/// lambda_l of sgn: E sgn(t) P_l(t) over one coordinate t of a uniform point. (-1)^k Beta(k + 1/2, d/2) / pi
/// for l = 2k + 1, zero for even l.
double sign_eigenvalue(int64_t d, int64_t l);

/// lambda_l of arcsin: pi/2 times the square of the sign's, because E_x sgn<q,x> sgn<x,k> = 2/pi asin<q,k>.
double arcsine_eigenvalue(int64_t d, int64_t l);

/// eta_l^2 = N(d, l) lambda_l^2.
double sign_energy(int64_t d, int64_t l);

/// Its limit for d to infinity: (2/pi) C(2k, k) / (4^k (2k + 1)).
double sign_energy_limit(int64_t l);

/// Energy above degree l: one minus the sum up to l. About (2/pi)^1.5 / sqrt(l) for l << d and (2/pi)^1.5
/// sqrt(d) / l for l >> d.
double sign_tail(int64_t d, int64_t l);

/// (1 - eta_1^2) / 2: the error that is left when exactly the linear part of the sign is learned.
double plateau(int64_t d);

/// Density at t = 0 of one coordinate of a uniform point: Gamma(d/2) / (sqrt(pi) Gamma((d-1)/2)).
double density_at_equator(int64_t d);

/// Gegenbauer polynomials with P_l(1) = 1 at one place, degree after degree: P_0 is there at once. For d = 2
/// they are Chebyshev's.
class Gegenbauer {
 public:
  Gegenbauer(int64_t d, double t) : d_(d), t_(t) {}
  double value() const { return value_; }
  int64_t degree() const { return degree_; }
  void next();

 private:
  int64_t d_, degree_ = 0;
  double t_, value_ = 1, before_ = 0;
};

/// sum over odd l of coefficient[(l - 1) / 2] P_l(t).
double odd_series(int64_t d, const std::vector<double>& coefficients, double t);

/// Walks the odd degrees 1, 3, 5, ... with eta_l^2 by its ratio: no lgamma, no cancellation, so a sum of a
/// million energies keeps ten digits.
class SignEnergies {
 public:
  explicit SignEnergies(int64_t d);
  int64_t degree() const { return l_; }
  double energy() const { return energy_; }
  void next();

 private:
  int64_t d_, l_ = 1;
  double energy_;
};

}  // namespace rankscope
