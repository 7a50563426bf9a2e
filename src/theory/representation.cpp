#include "theory/representation.h"

#include <cmath>

#include "theory/harmonics.h"

namespace rankscope {

HeadDensity::HeadDensity(int64_t d, int64_t last_degree, Normalisation normalisation)
    : d_(d), last_(last_degree) {
  const double power = normalisation == Normalisation::published ? 1.5 : 1.0;
  for (int64_t l = 1; l <= last_degree; l += 2)
    coefficients_.push_back(std::exp(power * log_harmonic_count(d, l)) / sign_eigenvalue(d, l));
}

double HeadDensity::at(double cosine) const { return odd_series(d_, coefficients_, cosine); }

double HeadDensity::error() const { return 0.5 * sign_tail(d_, last_); }

}  // namespace rankscope
