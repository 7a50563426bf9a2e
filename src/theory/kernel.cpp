#include "theory/kernel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "theory/harmonics.h"
#include "theory/quadrature.h"

namespace rankscope {
namespace {

using std::numbers::pi;

// N lambda^power for odd degrees, until a term is lost beside the other errors of double precision.
std::vector<double> series(int64_t d, int power) {
  constexpr double kNegligible = 1e-14;
  std::vector<double> out;
  for (SignEnergies e(d); out.empty() || std::abs(out.back()) > kNegligible; e.next())
    out.push_back(e.energy() * std::pow(sign_eigenvalue(d, e.degree()), power - 2));
  return out;
}

}  // namespace

double heads_agree(double query_cosine, double key_cosine) {
  return 0.5 + 2 / (pi * pi) * std::asin(std::clamp(query_cosine, -1.0, 1.0)) *
                   std::asin(std::clamp(key_cosine, -1.0, 1.0));
}

HeadAgainstTarget::HeadAgainstTarget(int64_t d) : d_(d) {
  if (d > 2) coefficients_ = series(d, 3);
}

double HeadAgainstTarget::at(double cosine) const {
  if (d_ == 2) return plane_head_against_target(std::acos(std::clamp(cosine, -1.0, 1.0)));
  return 0.5 + 0.5 * odd_series(d_, coefficients_, cosine);
}

double plane_head_against_target(double angle) {
  const double near = std::min(angle, pi - angle) / pi;
  return 0.5 + (angle > pi / 2 ? -1 : 1) * (0.25 - near * near);
}

double turned_heads_agree(int64_t d, double angle1, double angle2) {
  if (d == 2) return plane_turned_heads_agree(angle1, angle2);
  std::vector<double> coefficients = series(d, 4);
  Gegenbauer p(d, std::cos(angle1));
  for (double& c : coefficients) {
    p.next();
    c *= p.value();
    p.next();
  }
  return 0.5 + 0.5 * odd_series(d, coefficients, std::cos(angle2));
}

double plane_turned_heads_agree(double angle1, double angle2) {
  const auto folded = [](double angle) { return std::min(angle, 2 * pi - angle) / pi; };
  const double a = folded(std::abs(angle1 - angle2)), b = folded(angle1 + angle2);
  return (4 + 2 * (a * a * a + b * b * b) - 3 * (a * a + b * b)) / 6;
}

double block_correlation(int64_t d, int64_t r) {
  if (r >= d) return 1;
  // |P y|^2 = sin^2(psi) has a Beta law: psi has density 2 sin^(r-1) cos^(d-r-1) / Beta(r/2, (d-r)/2).
  const auto n = static_cast<double>(d), rank = static_cast<double>(r);
  const double log_scale = std::log(2.0) + log_gamma(n / 2) - log_gamma(rank / 2) - log_gamma((n - rank) / 2);
  const double mean = integrate(0, pi / 2, 400, [&](double psi) {
    return psi * std::exp(log_scale + (rank - 1) * std::log(std::sin(psi)) +
                          (n - rank - 1) * std::log(std::cos(psi)));
  });
  return 2 / pi * mean;
}

double orthogonal_blocks_error(int64_t d, int64_t r) {
  const double rho = block_correlation(d, r);
  return 0.5 * (1 - static_cast<double>(d) / static_cast<double>(r) * rho * rho);
}

}  // namespace rankscope
