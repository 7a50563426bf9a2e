#include "theory/kernel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "theory/harmonics.h"

namespace rankscope {
namespace {

using std::numbers::pi;

// N lambda^3 for odd degrees, until a term is lost beside the other errors of double precision.
std::vector<double> cubes(int64_t d) {
  constexpr double kNegligible = 1e-14;
  std::vector<double> out;
  for (SignEnergies e(d); out.empty() || std::abs(out.back()) > kNegligible; e.next())
    out.push_back(e.energy() * sign_eigenvalue(d, e.degree()));
  return out;
}

}  // namespace

double heads_agree(double query_cosine, double key_cosine) {
  return 0.5 + 2 / (pi * pi) * std::asin(std::clamp(query_cosine, -1.0, 1.0)) *
                   std::asin(std::clamp(key_cosine, -1.0, 1.0));
}

HeadAgainstTarget::HeadAgainstTarget(int64_t d) : d_(d) {
  if (d > 2) coefficients_ = cubes(d);
}

double HeadAgainstTarget::at(double cosine) const {
  if (d_ == 2) return plane_head_against_target(std::acos(std::clamp(cosine, -1.0, 1.0)));
  return 0.5 + 0.5 * odd_series(d_, coefficients_, cosine);
}

double plane_head_against_target(double angle) {
  const double near = std::min(angle, pi - angle) / pi;
  return 0.5 + (angle > pi / 2 ? -1 : 1) * (0.25 - near * near);
}

}  // namespace rankscope
