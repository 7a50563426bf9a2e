// Rank-1 hard heads on two orthonormal points, in closed form. Head (q, k) picks x_1 where
// <q,y><k,x_1-x_2> > 0; f is the nearest point. Everything below is a probability over uniform y and uniform
// direction of x_1 - x_2. With heads h and weights a the error is
//   E|f - sum a_h pick_h|^2 = 1 - 2 b'a + a'Ca,
// and the best weights are C^-1 b.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope {

/// C: two heads pick the same point. 1/2 + 2/pi^2 asin<q,q'> asin<k,k'>; cosines are clipped to [-1, 1].
double heads_agree(double query_cosine, double key_cosine);

/// b: a head picks the nearest point, as a function of <q,k>: 1/2 + 1/2 sum N lambda^3 P_l. Summed to
/// rounding; in the plane, where the series is slow, by its closed form.
class HeadAgainstTarget {
 public:
  explicit HeadAgainstTarget(int64_t d);
  double at(double cosine) const;

 private:
  int64_t d_;
  std::vector<double> coefficients_;
};

/// In the plane: 1/2 + sgn(pi/2 - t) (1/4 - (min(t, pi - t) / pi)^2) for the angle t between q and k.
double plane_head_against_target(double angle);

/// A: two heads with angles t1 and t2 between their q and k, turned at random against each other, agree.
/// 1/2 + 1/2 sum N lambda^4 P_l(cos t1) P_l(cos t2).
double turned_heads_agree(int64_t d, double angle1, double angle2);

/// In the plane: (4 + 2 (a^3 + b^3) - 3 (a^2 + b^2)) / 6 with a = |t1 - t2| / pi and b = (t1 + t2) / pi,
/// folded to [0, 1].
double plane_turned_heads_agree(double angle1, double angle2);

/// Hard heads of rank r on orthogonal blocks of coordinates: head P picks x_1 where <x_1 - x_2, P y> > 0. Its
/// sign agrees with the target's with correlation rho = 2/pi E asin |P y|, about 2/pi asin sqrt(r/d).
double block_correlation(int64_t d, int64_t r);

/// Error of the d/r blocks together: 1/2 (1 - (d/r) rho^2). Their signs are uncorrelated. The mean
/// (x_1 + x_2)/2 must come from elsewhere, from a head that attends evenly.
double orthogonal_blocks_error(int64_t d, int64_t r);

}  // namespace rankscope
