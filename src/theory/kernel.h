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

}  // namespace rankscope
