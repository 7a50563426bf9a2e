#include "spectral/arnoldi.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "base/philox.h"
#include "kernels/cpu/rows.h"
#include "spectral/dense.h"

namespace rankscope {
namespace {

constexpr int kFirstCheck = 16;  // the small eigenproblem costs more than several steps
constexpr int kCheckEvery = 8;

/// The Hessenberg matrix of the steps so far, a column a step.
class Hessenberg {
 public:
  explicit Hessenberg(int limit)
      : rows_(static_cast<size_t>(limit) + 1), h_(rows_ * static_cast<size_t>(limit), 0.0) {}
  double* column(int k) { return h_.data() + static_cast<size_t>(k) * rows_; }
  double at(int i, int j) const { return h_[static_cast<size_t>(j) * rows_ + static_cast<size_t>(i)]; }

  /// The largest eigenvalue of the leading k x k part, with its residual |h_{k+1,k}| |last entry of its
  /// vector|.
  RadiusEstimate ritz(int k) const {
    const auto n = static_cast<size_t>(k);
    std::vector<double> part(n * n, 0.0);
    for (int i = 0; i < k; ++i)
      for (int j = std::max(0, i - 1); j < k; ++j)
        part[static_cast<size_t>(i) * n + static_cast<size_t>(j)] = at(i, j);
    const std::vector<std::complex<double>> values = dense::hessenberg_eigenvalues(std::move(part), k);
    const auto theta = *std::max_element(values.begin(), values.end(),
                                         [](auto a, auto b) { return std::abs(a) < std::abs(b); });
    return {std::abs(theta), at(k, k - 1) * last_entry(k, theta), k};
  }

 private:
  // Of the unit eigenvector of theta: its entries from the last one up, a row an entry, which is the
  // direction in which it grows.
  double last_entry(int k, std::complex<double> theta) const {
    std::vector<std::complex<double>> y(static_cast<size_t>(k));
    y.back() = 1;
    double squares = 1;
    for (int i = k - 1; i > 0; --i) {
      std::complex<double> sum = -theta * y[static_cast<size_t>(i)];
      for (int j = i; j < k; ++j) sum += at(i, j) * y[static_cast<size_t>(j)];
      y[static_cast<size_t>(i) - 1] = -sum / at(i, i - 1);
      squares += std::norm(y[static_cast<size_t>(i) - 1]);
      if (squares > 1e200) break;  // the rest only makes it smaller
    }
    return 1 / std::sqrt(squares);
  }

  size_t rows_;
  std::vector<double> h_;
};

}  // namespace

RadiusEstimate spectral_radius(const LinearMap& map, double tolerance, int most, uint64_t seed) {
  const int64_t n = map.rows;
  const int limit = static_cast<int>(std::min<int64_t>(n, most));
  if (limit == 0) return {0, 0, 0};
  Hessenberg H(limit);
  const Philox random{seed, 0x4152, 0};
  std::vector<double> basis(static_cast<size_t>((limit + 1) * n));  // a row a vector
  for (int64_t i = 0; i < n; ++i) basis[static_cast<size_t>(i)] = random.normal(static_cast<uint64_t>(i));
  const auto scale = [n](double* x, double by) {
    for (int64_t i = 0; i < n; ++i) x[i] *= by;
  };
  scale(basis.data(), 1 / std::sqrt(kernels::sum_squares(basis.data(), n)));

  std::vector<double> c(static_cast<size_t>(limit)), taken(static_cast<size_t>(n));
  for (int k = 0; k < limit; ++k) {
    double* const w = basis.data() + (k + 1) * n;
    map.apply(w - n, w);
    // Twice is enough (Kahan and Parlett): one sweep of Gram-Schmidt leaves what rounding left.
    for (int sweep = 0; sweep < 2; ++sweep) {
      kernels::multiply(basis.data(), k + 1, n, w, c.data());
      kernels::multiply_transposed(basis.data(), k + 1, n, c.data(), taken.data());
      kernels::add_scaled(w, taken.data(), -1, n);
      kernels::add_scaled(H.column(k), c.data(), 1, k + 1);
    }
    const double rest = std::sqrt(kernels::sum_squares(w, n));
    H.column(k)[k + 1] = rest;
    const bool closed = rest < 1e-14;  // an invariant subspace: its eigenvalues are exact
    if (closed || k + 1 == limit || (k + 1 >= kFirstCheck && (k + 1) % kCheckEvery == 0)) {
      RadiusEstimate found = H.ritz(k + 1);
      if (closed) found.residual = rest;
      if (closed || k + 1 == limit || found.residual < tolerance) return found;
    }
    scale(w, 1 / rest);
  }
  return {};
}

}  // namespace rankscope
