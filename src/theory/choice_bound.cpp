#include "theory/choice_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "theory/harmonics.h"
#include "theory/heads_for.h"

namespace rankscope {

ChoiceBound::ChoiceBound(int64_t d, int64_t rank, ChoiceEnergies energies)
    : d_(d), rank_(rank), energies_(std::move(energies)) {
  const auto r = static_cast<double>(rank);
  for (size_t l = 0; l <= energies_.energy.size(); ++l) {
    const auto degree = static_cast<double>(l);
    log_share_.push_back(log_gamma(degree + r) - log_gamma(degree + 1) - log_gamma(r) -
                         log_harmonic_count(d, static_cast<int64_t>(l)));
  }
}

ChoiceBound::Sum ChoiceBound::sum(double log_heads) const {
  const auto share = [&](size_t l) { return std::min(1.0, std::exp(log_heads + log_share_[l])); };
  const size_t held = energies_.energy.size();
  const double above = share(held);
  Sum out{.bound = 1 - above, .error = 0};
  for (size_t l = 0; l < held; ++l) {
    const double more = share(l) - above;
    out.bound -= energies_.energy[l] * more;
    out.error += energies_.error[l] * more;
  }
  return out;
}

double ChoiceBound::at(double heads) const { return at_log(std::log(heads)); }

double ChoiceBound::at_log(double log_heads) const {
  if (rank_ >= d_) return 0;
  const Sum s = sum(log_heads);
  return std::max(0.0, s.bound - s.error);
}

double ChoiceBound::error_bar(double heads) const { return rank_ >= d_ ? 0 : sum(std::log(heads)).error; }

double ChoiceBound::log10_heads_for(double error) const {
  return log10_fewest_heads([this](double log_heads) { return at_log(log_heads); }, error);
}

}  // namespace rankscope
