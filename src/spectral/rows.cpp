#include "spectral/rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/cpu/rows.h"
#include "spectral/dense.h"

namespace rankscope {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Relative to sigma_1.
double gram_error(int64_t m, int64_t n) { return std::sqrt(kEpsilon * static_cast<double>(m + n)); }

bool finite(const double* a, int64_t count) {
  double sum = 0;  // 0 * x is NaN exactly where x is not finite
  for (int64_t i = 0; i < count; ++i) sum += 0.0 * a[i];
  return sum == 0;
}

Spectrum blank(int64_t m, int64_t n, double epsilon) {
  Spectrum s;
  s.rows = m, s.cols = n, s.epsilon = epsilon;
  s.sigma.assign(static_cast<size_t>(std::min(m, n)), 0.0);
  return s;
}

std::vector<double>& gram_scratch(int64_t k) {
  thread_local std::vector<double> g;
  g.resize(static_cast<size_t>(k * k));
  return g;
}

/// From the upper triangle of a Gram matrix, which is overwritten. False: the eigenvalues did not converge.
bool from_gram(double* g, Spectrum& s) {
  const int64_t k = std::min(s.rows, s.cols);
  double trace = 0;
  for (int64_t i = 0; i < k; ++i) trace += g[i * k + i];
  if (!std::isfinite(trace)) {
    std::fill(s.sigma.begin(), s.sigma.end(), kNan);
    s.error = kNan;
    return true;
  }
  if (!dense::symmetric_eigenvalues(g, k, s.sigma.data())) return false;
  s = spectrum_of_squares(std::move(s.sigma), s.rows, s.cols, s.epsilon);
  return true;
}

}  // namespace

bool gram_is_enough(int64_t m, int64_t n, double epsilon) {
  return gram_error(m, n) < static_cast<double>(std::max(m, n)) * epsilon;
}

Spectrum spectrum_of_squares(std::vector<double> squares, int64_t m, int64_t n, double epsilon) {
  Spectrum s{.sigma = std::move(squares), .rows = m, .cols = n, .epsilon = epsilon, .route = "gram"};
  std::sort(s.sigma.begin(), s.sigma.end(), std::greater<>());
  s.sigma.resize(static_cast<size_t>(std::min(m, n)));
  // What lies below the rounding of the largest eigenvalue is rounding: zero is nearer than its square root.
  const double floor = s.sigma.empty() ? 0.0 : 4 * kEpsilon * s.sigma.front();
  for (double& v : s.sigma) v = v > floor ? std::sqrt(v) : 0.0;
  s.error = gram_error(m, n) * s.largest();
  return s;
}

Spectrum spectrum_exact(const double* a, int64_t m, int64_t n, double epsilon) {
  Spectrum s = blank(m, n, epsilon);
  if (!finite(a, m * n)) {
    std::fill(s.sigma.begin(), s.sigma.end(), kNan);
    s.error = kNan;
    return s;
  }
  thread_local std::vector<double> copy;
  copy.assign(a, a + m * n);
  dense::singular_values(copy.data(), m, n, s.sigma.data());
  s.error = kEpsilon * static_cast<double>(m + n) * s.largest();
  return s;
}

Spectrum spectrum_gram(const double* a, int64_t m, int64_t n, double epsilon) {
  Spectrum s = blank(m, n, epsilon);
  std::vector<double>& g = gram_scratch(std::min(m, n));
  dense::gram(a, m, n, g.data());
  return from_gram(g.data(), s) ? s : spectrum_exact(a, m, n, epsilon);
}

Spectrum spectrum_of(const double* a, int64_t m, int64_t n, double epsilon) {
  return gram_is_enough(m, n, epsilon) ? spectrum_gram(a, m, n, epsilon) : spectrum_exact(a, m, n, epsilon);
}

TokenSpectra token_spectra(const double* centered, const double* mean, int64_t m, int64_t n, double epsilon) {
  const auto plain_exact = [&] {
    std::vector<double> x(centered, centered + m * n);
    for (int64_t i = 0; i < m; ++i) kernels::add_scaled(x.data() + i * n, mean, 1.0, n);
    return spectrum_exact(x.data(), m, n, epsilon);
  };
  if (!gram_is_enough(m, n, epsilon)) return {plain_exact(), spectrum_exact(centered, m, n, epsilon)};

  TokenSpectra out{blank(m, n, epsilon), blank(m, n, epsilon)};
  const int64_t k = std::min(m, n);
  std::vector<double>& g = gram_scratch(k);
  dense::gram(centered, m, n, g.data());
  thread_local std::vector<double> plain;
  plain = g;
  if (m <= n) {  // X X^T = R R^T + r 1^T + 1 r^T + |mean|^2 1 1^T with r = R mean
    std::vector<double> r(static_cast<size_t>(m));
    kernels::multiply(centered, m, n, mean, r.data());
    const double offset = kernels::sum_squares(mean, n);
    for (size_t i = 0; i < r.size(); ++i)
      for (size_t j = i; j < r.size(); ++j) plain[i * r.size() + j] += r[i] + r[j] + offset;
  } else {  // X^T X = R^T R + m mean mean^T
    for (int64_t i = 0; i < n; ++i)
      kernels::add_scaled(plain.data() + i * n + i, mean + i, static_cast<double>(m) * mean[i], n - i);
  }
  if (!from_gram(g.data(), out.centered)) out.centered = spectrum_exact(centered, m, n, epsilon);
  if (!from_gram(plain.data(), out.plain)) out.plain = plain_exact();
  return out;
}

}  // namespace rankscope
