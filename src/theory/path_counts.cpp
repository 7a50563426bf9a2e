#include "theory/path_counts.h"

#include <algorithm>
#include <cmath>

#include "base/special.h"

namespace rankscope {

namespace {

double log_choose(double n, double k) {
  return log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1);
}

// log(x^n), given log x: 0^0 is 1.
double log_power(double log_x, double n) { return n == 0 ? 0 : n * log_x; }

// log e_k of layers that all pass on `alpha`: the binomial terms.
std::vector<double> log_sums_of_equal(double alpha, size_t layers) {
  const double L = static_cast<double>(layers);
  std::vector<double> out;
  for (size_t length = 0; length <= layers; ++length) {
    const double k = static_cast<double>(length);
    out.push_back(log_choose(L, k) + log_power(std::log(alpha), L - k) + log_power(std::log1p(-alpha), k));
  }
  return out;
}

// The same of layers that differ, one after another: as many sums as layers, for each of them.
std::vector<double> log_sums(std::span<const double> alpha) {
  const auto log_sum = [](double a, double b) {
    const double top = std::max(a, b);
    return std::isinf(top) ? top : top + std::log1p(std::exp(std::min(a, b) - top));
  };
  std::vector<double> e{0.0};  // of the layers so far
  for (const double a : alpha) {
    e.push_back(-INFINITY);
    for (size_t k = e.size() - 1; k > 0; --k) e[k] = log_sum(e[k] + std::log(a), e[k - 1] + std::log1p(-a));
    e[0] += std::log(a);
  }
  return e;
}

}  // namespace

PathCounts path_counts(int64_t layers, int64_t heads) {
  PathCounts out;
  const double L = static_cast<double>(layers), H = static_cast<double>(heads);
  out.log10_total = L * std::log10(1 + H);
  for (int64_t length = 0; length <= layers; ++length) {
    const double k = static_cast<double>(length);
    const double log_count = log_choose(L, k) + k * std::log(H);
    out.log10_count.push_back(log_count / std::log(10.0));
    out.share.push_back(std::exp(log_count - L * std::log1p(H)));
  }
  const double p = H / (H + 1);
  out.mean = L * p;
  out.deviation = std::sqrt(L * p * (1 - p));
  out.mode = std::min(layers, (layers + 1) * heads / (heads + 1));
  return out;
}

PathCounts path_counts(std::span<const LayerPaths> layers) {
  const auto as_usual = [&](const LayerPaths& l) {
    return l.skip && l.heads > 0 && l.heads == layers.front().heads;
  };
  if (std::ranges::all_of(layers, as_usual))
    return path_counts(static_cast<int64_t>(layers.size()), layers.empty() ? 1 : layers.front().heads);
  PathCounts out;
  if (std::ranges::any_of(layers, [](const LayerPaths& l) { return l.heads == 0 && !l.skip; })) {
    out.log10_total = -INFINITY;
    out.log10_count.assign(layers.size() + 1, -INFINITY);
    out.share.assign(layers.size() + 1, 0.0);
    return out;
  }
  double variance = 0;
  out.share = {1.0};
  for (const LayerPaths& layer : layers) {
    const double H = static_cast<double>(layer.heads), ways = H + (layer.skip ? 1 : 0), p = H / ways;
    out.share.push_back(0);
    for (size_t k = out.share.size() - 1; k > 0; --k)
      out.share[k] = out.share[k] * (1 - p) + out.share[k - 1] * p;
    out.share[0] *= 1 - p;
    out.log10_total += std::log10(ways);
    out.mean += p;
    variance += p * (1 - p);
  }
  out.deviation = std::sqrt(variance);
  for (size_t k = 0; k < out.share.size(); ++k) {
    out.log10_count.push_back(out.log10_total + std::log10(out.share[k]));
    if (out.share[k] >= out.share[static_cast<size_t>(out.mode)]) out.mode = static_cast<int64_t>(k);
  }
  return out;
}

std::vector<double> log_path_weights(std::span<const double> alpha, int64_t heads, double r0, double c) {
  const auto as_the_first = [&](double a) { return a == alpha.front(); };
  const bool equal = !alpha.empty() && std::ranges::all_of(alpha, as_the_first);
  std::vector<double> e = equal ? log_sums_of_equal(alpha.front(), alpha.size()) : log_sums(alpha);
  for (size_t k = 0; k < e.size(); ++k) {
    const double length = static_cast<double>(k);
    e[k] += length * std::log(static_cast<double>(heads)) + std::log(r0) -
            (std::pow(3.0, length) - 1) * std::log(c);
  }
  return e;
}

int64_t path_count(int64_t layers, int64_t heads, int64_t length, int64_t most) {
  // C(L, j) grows by (L - j + 1) / j, exactly divisible at each step.
  double size = 1;
  for (int64_t j = 1; j <= length; ++j)
    size *= static_cast<double>(layers - j + 1) / static_cast<double>(j) * static_cast<double>(heads);
  return size >= static_cast<double>(most) ? most : static_cast<int64_t>(std::llround(size));
}

}  // namespace rankscope
