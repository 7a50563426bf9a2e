// How far a uniform point of the sphere in R^d is from a pole, and how far the nearest of many is.
#pragma once

#include <cstdint>

#include "theory/quadrature.h"

namespace rankscope {

/// The angle between a uniform point and the pole. An angle keeps its digits near the pole, where the cosine
/// is 1 and has none to spare: in two dimensions a million points leave an angle of 1e-6.
class PoleAngle {
 public:
  explicit PoleAngle(int64_t d);

  double density(double angle) const;
  double below(double angle) const;      // P(one point's angle is smaller)
  double log_above(double angle) const;  // log P(one point's angle is larger)
  /// Minus the mean of the cosine over angles above this one: c sin^(d-2) cos has an elementary integral.
  double cosine_above(double angle) const;

 private:
  double cap(double angle) const;
  double d_, c_;
};

/// The smallest of many independent angles. Its law is a peak that narrows as d or the number grows, so
/// integrals run only between angles that it practically never leaves: fixed panels over all angles would
/// step over the peak, and far from it the tails underflow.
class SmallestAngle {
 public:
  SmallestAngle(int64_t d, double points);
  const PoleAngle& one() const { return one_; }
  double points() const { return points_; }
  double from() const { return from_; }
  double to() const { return to_; }

  /// Integral of f. With 32 panels of 20 points the peak is resolved to rounding.
  template <class Function>
  double integral(const Function& f) const {
    return integrate(from_, to_, 32, f);
  }
  template <class Function>
  double mean(const Function& f) const {
    return integral([&](double angle) {
      return points_ * one_.density(angle) * std::exp((points_ - 1) * one_.log_above(angle)) * f(angle);
    });
  }

 private:
  PoleAngle one_;
  double points_, from_, to_;
};

}  // namespace rankscope
