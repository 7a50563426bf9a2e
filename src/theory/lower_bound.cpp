#include "theory/lower_bound.h"

#include <algorithm>
#include <cmath>

#include "theory/harmonics.h"
#include "theory/heads_for.h"

namespace rankscope {
namespace {

// How far the series is summed before its tail is taken from the asymptotic law. The tail's total energy is
// known exactly, one minus the sum so far; only the product with the share is approximated. In the variable
// m = l + (d-2)/2 both have an error of order (d/m)^2 beside 1, and the tail is sqrt(d)/m, so the bound is
// off by d^2.5 / m^3: 1e-11 at the degree below. The cap keeps memory at 48 MB; it is felt above d = 4096
// only.
int64_t last_degree(int64_t d) {
  constexpr double kAccuracy = 1e-11;
  constexpr int64_t kCap = 4'000'001;
  const double m = std::cbrt(std::pow(static_cast<double>(d), 2.5) / kAccuracy);
  return std::min(kCap, static_cast<int64_t>(m) | 1);
}

}  // namespace

LowerBound::LowerBound(int64_t d, int64_t rank) : d_(d), rank_(rank) {
  if (rank >= d) return;
  const auto n = static_cast<double>(d), r = static_cast<double>(rank);
  const int64_t last = last_degree(d);
  const auto entries = static_cast<size_t>(last / 2 + 1);
  log_share_.reserve(entries);
  tail_.reserve(entries);
  // share(l+1) / share(l), so that neither a binomial coefficient nor lgamma is needed.
  const auto step = [n, r](double l) { return (l + r) * (2 * l + n - 2) / ((2 * l + n) * (l + n - 2)); };
  double log_share = std::log(r / n), sum = 0;
  for (SignEnergies e(d); e.degree() <= last; e.next()) {
    const auto l = static_cast<double>(e.degree());
    log_share_.push_back(log_share);
    tail_.push_back(e.energy());  // for now; summed from behind below
    sum += e.energy();
    log_share += std::log(step(l) * step(l + 1));
  }
  rest_ = std::max(0.0, 1 - sum);
  // Half way to the next odd degree, where a sum over odd degrees turns into an integral.
  log_last_share_ = log_share_.back() + std::log(step(static_cast<double>(last)));
  limit_ = rank == d - 1 ? 0.5 : 0.0;
  decay_ = rank == d - 1 ? 1.0 : n - 1 - r;

  shared_.resize(tail_.size());
  const double settled = limit_ > 0 ? limit_ / std::exp(log_last_share_) : 0;  // of the last share, for ever
  double tail = rest_, shared = rest_ * (settled + (1 - settled) / (1 + decay_)), above = log_last_share_;
  for (size_t i = tail_.size(); i-- > 0;) {
    shared = tail_[i] + shared * std::exp(above - log_share_[i]);
    tail += tail_[i];
    above = log_share_[i];
    shared_[i] = shared;
    tail_[i] = tail;
  }
}

double LowerBound::at(double heads) const { return at_log(std::log(heads)); }

double LowerBound::at_log(double log_heads) const {
  if (rank_ >= d_) return 0;
  const auto first = std::partition_point(log_share_.begin(), log_share_.end(),
                                          [=](double log_share) { return log_share + log_heads >= 0; });
  if (first == log_share_.end()) return beyond(log_heads);
  const auto i = static_cast<size_t>(first - log_share_.begin());
  return std::max(0.0, 0.5 * (tail_[i] - std::exp(log_heads + log_share_[i]) * shared_[i]));
}

// Every degree held is covered. Above, eta^2 falls as m^-2 and the share as m^-decay towards its limit: with
// x = H (share - limit) / (1 - H limit) at the last degree, the heads run out at m x^(1/decay).
double LowerBound::beyond(double log_heads) const {
  double free = 1, log_x = log_heads + log_last_share_;
  if (limit_ > 0) {
    free = 1 - std::exp(log_heads) * limit_;
    if (free <= 0) return 0;
    log_x = log_heads + std::log((std::exp(log_last_share_) - limit_) / free);
  }
  return 0.5 * rest_ * free * std::exp(-std::max(0.0, log_x) / decay_) * decay_ / (1 + decay_);
}

double LowerBound::log10_heads_for(double error) const {
  return log10_fewest_heads([this](double log_heads) { return at_log(log_heads); }, error);
}

double lower_bound(int64_t d, int64_t rank, double heads) { return LowerBound(d, rank).at(heads); }

}  // namespace rankscope
