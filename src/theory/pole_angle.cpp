#include "theory/pole_angle.h"

#include <cmath>
#include <numbers>

#include "theory/harmonics.h"

namespace rankscope {
namespace {

// Bisection for the angle from which on `passed` holds: that angle lies between the two.
struct Bracket {
  double before = 0, after = std::numbers::pi;
};

template <class Passed>
Bracket bracket(const Passed& passed) {
  Bracket out;
  for (int step = 0; step < 40; ++step) {  // to 3e-12: a millionth of the narrowest peak
    const double middle = (out.before + out.after) / 2;
    (passed(middle) ? out.after : out.before) = middle;
  }
  return out;
}

}  // namespace

PoleAngle::PoleAngle(int64_t d) : d_(static_cast<double>(d)), c_(density_at_equator(d)) {}

double PoleAngle::density(double angle) const { return c_ * std::pow(std::sin(angle), d_ - 2); }

double PoleAngle::below(double angle) const { return std::cos(angle) > 0 ? cap(angle) : 1 - cap(angle); }

double PoleAngle::log_above(double angle) const {
  return std::cos(angle) > 0 ? std::log1p(-cap(angle)) : std::log(cap(angle));
}

double PoleAngle::cosine_above(double angle) const {
  return c_ * std::pow(std::sin(angle), d_ - 1) / (d_ - 1);
}

// The smaller of the two caps into which a circle of latitude cuts the sphere. Near the equator one minus the
// belt between it and its mirror image: the squared sine is 1 there and has lost the angle.
double PoleAngle::cap(double angle) const {
  const double sine = std::sin(angle), cosine = std::cos(angle), half = (d_ - 1) / 2;
  const bool near_equator = cosine * cosine * (half + 2.5) < 1.5;  // where incomplete_beta is direct
  return near_equator ? 0.5 - 0.5 * incomplete_beta(0.5, half, cosine * cosine)
                      : 0.5 * incomplete_beta(half, 0.5, sine * sine);
}

SmallestAngle::SmallestAngle(int64_t d, double points) : one_(d), points_(points) {
  // Left out is less than 1e-18 of the law on the near side and e^-50 on the far side.
  from_ = bracket([&](double angle) { return one_.below(angle) * points > 1e-18; }).before;
  to_ = bracket([&](double angle) { return one_.log_above(angle) * points < -50; }).after;
}

}  // namespace rankscope
