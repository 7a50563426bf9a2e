// The target of the exponential separation: a signed sum of 2 d^2 + 1 biased nearest-neighbour functions of
// two points. Biased, nearest is decided by sgn(t - b) with t = <x_1 - x_2, y>, y Gaussian, so that
//
//   f*(t) = sum_{i = -d^2 .. d^2} (-1)^i sgn(t - i spacing)
//
// is a square wave of height 1 and period 2 spacing, out to |t| = d^2 spacing. A full-rank layer writes it
// with one biased head a summand. The published theorem says that rank r <= d - 3 cannot come below 1/40
// unless d H max|V|^2 >= exp(c (d - r)), with a constant c that is not known to us. The spacing 1/d, which
// lets d^2 jumps fill |t| <= d, and the explicit bound below are our reconstruction.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope {

class SquareWave {
 public:
  explicit SquareWave(int64_t d);
  SquareWave(int64_t d, double spacing);

  int64_t summands() const { return 2 * reach_ + 1; }
  double spacing() const { return spacing_; }
  /// The sum as it is written: O(d^2).
  double sum(double t) const;
  /// The same in O(1): 1 or -1, and 0 at a jump.
  double at(double t) const;

  /// Energy of the part along (x_1 - x_2)/2, for orthonormal points: |x_1 - x_2|^2 / 4 E f*^2 = 1/2.
  double energy() const { return 0.5; }

  /// log of the largest share of that energy that a function of r numbers Q^T y can hold, averaged over the
  /// direction of x_1 - x_2, whatever Q: E sum_k 8 / (pi k)^2 exp(-k^2 w^2 (1 - s)), k odd, with frequency
  /// w = sqrt(2) pi / spacing and s = |Q^T w|^2 ~ Beta(r/2, (d-r)/2). Products of different harmonics,
  /// e^(-w^2) and less, and the ends of the wave, e^(-(d^2 spacing)^2 / 4), are left out. 0 at full rank.
  double log_captured(int64_t r) const;

  /// log10 of the least H max|V| with which H heads of rank r reach `error` < 1/2: by Cauchy-Schwarz each
  /// head has at most |V| sqrt(captured / 2) of the target in it, so
  /// error >= 1/2 - 2 H |V| sqrt(captured / 2).
  double log10_weight_for(int64_t r, double error) const;

  /// What no layer of H heads of rank r can come below, whatever their weights: the theorem of docs/BOUND.md
  /// for this target, given the length of y, averaged over it. Degrees above 400 count with the share of the
  /// first of them, so it is never above the bound. The cost grows with d^2: for d of 16 or so.
  double lower_bound(int64_t r, double heads) const;

 private:
  std::vector<double> degree_energies(int64_t last) const;

  int64_t d_, reach_;
  double spacing_;
};

/// The error that the theorem separates at.
constexpr double kSeparationError = 1.0 / 40;

}  // namespace rankscope
