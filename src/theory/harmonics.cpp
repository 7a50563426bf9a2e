#include "theory/harmonics.h"

#include <cmath>
#include <numbers>

namespace rankscope {

using std::numbers::pi;

double log_harmonic_count(int64_t d, int64_t l) {
  if (l == 0) return 0;
  const auto n = static_cast<double>(d), k = static_cast<double>(l);
  return std::log((2 * k + n - 2) / k) + log_gamma(k + n - 2) - log_gamma(k) - log_gamma(n - 1);
}

namespace {

double log_sign_eigenvalue(int64_t d, int64_t l) {  // of |lambda_l|, for odd l
  const double a = static_cast<double>(l) / 2, b = static_cast<double>(d) / 2;
  return log_gamma(a) + log_gamma(b) - log_gamma(a + b) - std::log(pi);
}

}  // namespace

double sign_eigenvalue(int64_t d, int64_t l) {
  if (l % 2 == 0) return 0;
  const double size = std::exp(log_sign_eigenvalue(d, l));
  return (l / 2) % 2 == 0 ? size : -size;
}

double arcsine_eigenvalue(int64_t d, int64_t l) {
  const double sign = sign_eigenvalue(d, l);
  return pi / 2 * sign * sign;
}

double sign_energy(int64_t d, int64_t l) {
  if (l % 2 == 0) return 0;
  return std::exp(log_harmonic_count(d, l) + 2 * log_sign_eigenvalue(d, l));
}

double sign_energy_limit(int64_t l) {
  if (l % 2 == 0) return 0;
  const auto k = static_cast<double>(l / 2);
  return 2 / pi / static_cast<double>(l) *
         std::exp(log_gamma(2 * k + 1) - 2 * log_gamma(k + 1) - 2 * k * std::log(2.0));
}

double sign_tail(int64_t d, int64_t l) {
  double sum = 0;
  for (SignEnergies e(d); e.degree() <= l; e.next()) sum += e.energy();
  return 1 - sum;
}

double plateau(int64_t d) { return 0.5 * (1 - sign_energy(d, 1)); }

double density_at_equator(int64_t d) {
  const auto n = static_cast<double>(d);
  return std::exp(log_gamma(n / 2) - log_gamma((n - 1) / 2)) / std::sqrt(pi);
}

void Gegenbauer::next() {
  const auto l = static_cast<double>(degree_), n = static_cast<double>(d_);
  // At l = 0 the recursion of d = 2 divides zero by zero; P_1 is t in every dimension.
  const double after = degree_ == 0 ? t_ : ((2 * l + n - 2) * t_ * value_ - l * before_) / (l + n - 2);
  before_ = value_;
  value_ = after;
  ++degree_;
}

double odd_series(int64_t d, const std::vector<double>& coefficients, double t) {
  double sum = 0;
  Gegenbauer p(d, t);
  for (const double c : coefficients) {
    p.next();
    sum += c * p.value();
    p.next();
  }
  return sum;
}

SignEnergies::SignEnergies(int64_t d) : d_(d), energy_(sign_energy(d, 1)) {}

void SignEnergies::next() {
  const auto l = static_cast<double>(l_), n = static_cast<double>(d_);
  const double eigenvalue = l / (l + n);  // |lambda_{l+2} / lambda_l|
  const double count = (2 * l + n + 2) / (2 * l + n - 2) * (l + n - 2) * (l + n - 1) / ((l + 1) * (l + 2));
  energy_ *= count * eigenvalue * eigenvalue;
  l_ += 2;
}

}  // namespace rankscope
