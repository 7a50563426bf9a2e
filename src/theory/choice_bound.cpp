#include "theory/choice_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "theory/heads_for.h"

namespace rankscope {

ChoiceBound::ChoiceBound(int64_t d, int64_t rank, ChoiceEnergies energies)
    : d_(d), rank_(rank), energies_(std::move(energies)) {
  const auto n = static_cast<double>(d), r = static_cast<double>(rank);
  // share(l+1) / share(l): logarithms of large Gammas would lose digits.
  const auto step = [n, r](double l) {
    return l == 0 ? r / n : (l + r) * (2 * l + n - 2) / ((2 * l + n) * (l + n - 2));
  };
  log_share_.push_back(0);
  for (size_t l = 0; l < energies_.energy.size(); ++l)
    log_share_.push_back(log_share_.back() + std::log(step(static_cast<double>(l))));
}

ChoiceBound::Sum ChoiceBound::sum(double log_heads) const {
  const auto share = [&](size_t l) { return std::min(1.0, std::exp(log_heads + log_share_[l])); };
  // A share is the exponential of a logarithm of this size, which was walked to in a few roundings a degree.
  const size_t held = energies_.energy.size();
  const double size = std::abs(log_heads) + std::abs(log_share_[held]) + 8 * static_cast<double>(held);
  const double rounding = size * std::numeric_limits<double>::epsilon();
  const double above = share(held);
  Sum out{.bound = 1 - above, .error = rounding * above};
  for (size_t l = 0; l < held; ++l) {
    const double more = share(l) - above;
    out.bound -= energies_.energy[l] * more;
    out.error += energies_.error[l] * more + std::abs(energies_.energy[l]) * rounding * share(l);
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
