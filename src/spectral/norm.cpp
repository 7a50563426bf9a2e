#include "spectral/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/philox.h"
#include "kernels/cpu/rows.h"

namespace rankscope {
namespace {

constexpr uint32_t kStartStream = 0x6e6f726d;  // "norm"
constexpr int kMostSteps = 400;
constexpr int kCheckEvery = 3;
constexpr double kRounding = 1e-13;  // what is left of a vector of length one when all of it was taken off

/// An orthonormal set that grows by one vector at a time.
class Basis {
 public:
  explicit Basis(int64_t n) : n_(n) {}
  double* append() {
    vectors_.resize(vectors_.size() + static_cast<size_t>(n_));
    return last();
  }
  double* last() { return vectors_.data() + vectors_.size() - static_cast<size_t>(n_); }
  int64_t count() const { return static_cast<int64_t>(vectors_.size()) / n_; }

  /// Takes the others' part off the last vector, scales it to length one and returns the length it had.
  double orthonormalise() {
    double* x = last();
    double before = std::sqrt(kernels::sum_squares(x, n_)), length = before;
    for (int pass = 0; pass < 2; ++pass, before = length) {
      project(x);
      length = std::sqrt(kernels::sum_squares(x, n_));
      if (length > 0.5 * before) break;  // little was taken off, so little rounding was left behind
    }
    if (length > 0)
      for (int64_t i = 0; i < n_; ++i) x[i] /= length;
    return length;
  }

 private:
  void project(double* x) {
    const int64_t others = count() - 1;
    coefficients_.resize(static_cast<size_t>(others));
    kernels::multiply(vectors_.data(), others, n_, x, coefficients_.data());
    for (int64_t i = 0; i < others; ++i)
      kernels::add_scaled(x, vectors_.data() + i * n_, -coefficients_[static_cast<size_t>(i)], n_);
  }

  int64_t n_;
  std::vector<double> vectors_, coefficients_;
};

struct Top {
  double sigma;
  double last;  // the last component of its left singular vector
};

/// Largest singular value of the upper bidiagonal B with diagonal `alpha` and superdiagonal `beta`, from the
/// tridiagonal B B^T: Newton's iteration on the characteristic polynomial, from above, is monotone.
Top top_of_bidiagonal(const std::vector<double>& alpha, const std::vector<double>& beta) {
  const size_t k = alpha.size();
  std::vector<double> diagonal(k), off(k, 0.0);  // off[i] couples i - 1 and i
  for (size_t i = 0; i < k; ++i) {
    diagonal[i] = alpha[i] * alpha[i] + (i + 1 < k ? beta[i] * beta[i] : 0.0);
    if (i > 0) off[i] = alpha[i] * beta[i - 1];
  }
  double lambda = 0;
  for (size_t i = 0; i < k; ++i)
    lambda = std::max(lambda, diagonal[i] + off[i] + (i + 1 < k ? off[i + 1] : 0.0));
  lambda *= 1 + 1e-15 * static_cast<double>(k);
  for (int round = 0; round < 100; ++round) {
    double pivot = lambda - diagonal[0], slope = 1, sum = 0;  // sum of slope / pivot is p' / p
    bool passed = pivot <= 0;
    sum = slope / pivot;
    for (size_t i = 1; i < k && !passed; ++i) {
      const double ratio = off[i] * off[i] / pivot;
      slope = 1 + ratio * slope / pivot;
      pivot = lambda - diagonal[i] - ratio;
      passed = pivot <= 0;
      sum += slope / pivot;
    }
    if (passed) break;  // rounding took it below the root: it is there
    const double step = 1 / sum;
    lambda -= step;
    if (step < 1e-15 * lambda) break;
  }
  // Upwards from the last component: the wanted solution grows in this direction, so errors do not.
  double above = 0, here = 1, squares = 1;  // x[i + 1], x[i]
  for (size_t i = k; i-- > 1;) {
    if (off[i] == 0) break;
    const double below = ((lambda - diagonal[i]) * here - (i + 1 < k ? off[i + 1] * above : 0.0)) / off[i];
    above = here, here = below;
    squares += here * here;
    if (squares > 1e200) break;
  }
  return {std::sqrt(lambda), 1 / std::sqrt(squares)};
}

}  // namespace

LinearMap dense_map(const double* a, int64_t m, int64_t n, bool centered) {
  const auto center = [m](double* y) {
    double mean = 0;
    for (int64_t i = 0; i < m; ++i) mean += y[i];
    mean /= static_cast<double>(m);
    for (int64_t i = 0; i < m; ++i) y[i] -= mean;
  };
  return {m, n,
          [=](const double* x, double* y) {
            kernels::multiply(a, m, n, x, y);
            if (centered) center(y);
          },
          [=](const double* y, double* x) {
            if (!centered) return kernels::multiply_transposed(a, m, n, y, x);
            std::vector<double> copy(y, y + m);
            center(copy.data());
            kernels::multiply_transposed(a, m, n, copy.data(), x);
          }};
}

NormEstimate spectral_norm(const LinearMap& map, double tolerance, uint64_t seed) {
  if (map.rows == 0 || map.cols == 0) return {0.0, 0.0, 0};
  Basis left(map.rows), right(map.cols);
  const Philox random{seed, kStartStream};
  double* start = right.append();
  for (int64_t i = 0; i < map.cols; ++i) start[i] = random.normal(static_cast<uint64_t>(i));
  right.orthonormalise();

  std::vector<double> alpha, beta;
  double scale = 0;
  for (int step = 1;; ++step) {
    map.apply(right.last(), left.append());
    const double a = left.orthonormalise();
    if (std::isnan(a)) return {a, a, step};
    scale = std::max(scale, a);
    if (a <= kRounding * scale) {  // the left space is exhausted: what was seen is all there is
      alpha.push_back(0.0);
      return {top_of_bidiagonal(alpha, beta).sigma, a, step};
    }
    alpha.push_back(a);
    map.adjoint(left.last(), right.append());
    const double b = right.orthonormalise();
    scale = std::max(scale, b);
    const bool exhausted = step >= kMostSteps || b <= kRounding * scale;
    if (exhausted || step % kCheckEvery == 0) {
      const Top top = top_of_bidiagonal(alpha, beta);
      const double residual = b * top.last;
      if (exhausted || residual <= tolerance * top.sigma) return {top.sigma, residual, step};
    }
    beta.push_back(b);
  }
}

}  // namespace rankscope
