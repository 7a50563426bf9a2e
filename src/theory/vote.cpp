#include "theory/vote.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/philox.h"
#include "theory/harmonics.h"
#include "theory/quadrature.h"

namespace rankscope {
namespace {

using std::numbers::pi;

constexpr double kExactHeads = 1 << 20;

}  // namespace

double vote_error(int64_t d, double heads, Tie tie) {
  const double scale = pi / std::sqrt(heads);
  if (heads > kExactHeads)
    return mean_over_latitude(d, scale, [=](double phi) {
      // Half of P(right) - P(wrong). With many heads only angles count at which the difference of the two,
      // both near a half, would have no digit left.
      const double lead = phi / pi;
      return 2 * normal_cdf(-std::sqrt(heads) * lead / std::sqrt((0.5 + lead) * (0.5 - lead)));
    });
  const bool even = std::fmod(heads, 2) == 0;
  const double needed = even ? heads / 2 + 1 : (heads + 1) / 2;  // votes that make a majority
  const double log_ways = log_gamma(heads + 1) - 2 * log_gamma(heads / 2 + 1);
  return mean_over_latitude(d, scale, [=](double phi) {
    const double wrong = 0.5 - phi / pi;
    const double lost = incomplete_beta(needed, heads - needed + 1, wrong);
    if (!even || wrong <= 0) return 2 * lost;
    const double tied = std::exp(log_ways + heads / 2 * std::log(wrong * (1 - wrong)));
    return 2 * lost + (tie == Tie::mean ? 0.5 : 1.0) * tied;
  });
}

double vote_asymptote(int64_t d, double heads) { return std::sqrt(static_cast<double>(d) / heads); }

Estimate vote_advantage(int64_t d, int64_t n, int64_t samples, uint64_t seed) {
  const Philox words{.seed = seed, .stream = 0x766f7465};
  const auto points = static_cast<size_t>(n);
  std::vector<double> y(points), q(points), gain(static_cast<size_t>(samples));
  uint64_t index = 0;
  for (double& sample : gain) {
    for (double& v : y) v = words.normal(index++);
    for (double& v : q) v = words.normal(index++);
    double rest = 0;  // squared norm of y outside the points' span
    for (int64_t k = n; k < d; ++k) {
      const double v = words.normal(index++);
      rest += v * v;
    }
    // The head picks the largest or the smallest of q, by the sign of <q, y>; outside the span that is a
    // Gaussian of variance `rest`. By symmetry the place of that extreme may be put where y is largest, which
    // happens once in N: the chance 1/N cancels and only the advantage is sampled.
    const auto best = static_cast<size_t>(std::max_element(y.begin(), y.end()) - y.begin());
    const auto advantage = [&](std::vector<double>::iterator extreme) {
      std::iter_swap(extreme, q.begin() + static_cast<std::ptrdiff_t>(best));
      double product = 0;
      for (size_t i = 0; i < points; ++i) product += q[i] * y[i];
      std::iter_swap(extreme, q.begin() + static_cast<std::ptrdiff_t>(best));
      return normal_cdf(product / std::sqrt(rest)) - 0.5;
    };
    sample =
        (advantage(std::max_element(q.begin(), q.end())) - advantage(std::min_element(q.begin(), q.end()))) /
        static_cast<double>(n);
  }
  return arithmetic_mean(gain);
}

}  // namespace rankscope
