#include "spectral/arnoldi.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/philox.h"

namespace rankscope {
namespace {

constexpr int kCheckEvery = 8;  // the small eigenproblem costs more than a step

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The largest Ritz value of the leading k x k part of H, with its residual |h_{k+1,k}| |last entry of its
// vector|.
RadiusEstimate ritz(const at::Tensor& H, int k) {
  const auto [values, vectors] = at::linalg_eig(H.narrow(0, 0, k).narrow(1, 0, k));
  const at::Tensor modulus = values.abs();
  const int64_t largest = modulus.argmax().item<int64_t>();
  const at::Tensor v = vectors.select(1, largest);
  const double last = v[k - 1].abs().item<double>() / v.abs().square().sum().sqrt().item<double>();
  return {modulus[largest].item<double>(), std::abs(H[k][k - 1].item<double>()) * last, k};
}

}  // namespace

RadiusEstimate spectral_radius(const LinearMap& map, double tolerance, int most, uint64_t seed) {
  const auto n = static_cast<size_t>(map.rows);
  const int limit = static_cast<int>(std::min<int64_t>(map.rows, most));
  if (limit == 0) return {0, 0, 0};
  at::Tensor H = at::zeros({limit + 1, limit}, at::kDouble);
  auto h = H.accessor<double, 2>();
  const Philox random{seed, 0x4152, 0};
  std::vector<Vector> basis(1, Vector(n));
  for (size_t i = 0; i < n; ++i) basis[0][i] = random.normal(i);
  const double start = std::sqrt(dot(basis[0], basis[0]));
  for (double& x : basis[0]) x /= start;

  for (int k = 0; k < limit; ++k) {
    Vector w(n);
    map.apply(basis.back().data(), w.data());
    // Twice is enough (Kahan and Parlett): one sweep of Gram-Schmidt leaves what rounding left.
    for (int sweep = 0; sweep < 2; ++sweep)
      for (int j = 0; j <= k; ++j) {
        const double c = dot(basis[static_cast<size_t>(j)], w);
        h[j][k] += c;
        for (size_t i = 0; i < n; ++i) w[i] -= c * basis[static_cast<size_t>(j)][i];
      }
    const double rest = std::sqrt(dot(w, w));
    h[k + 1][k] = rest;
    const bool closed = rest < 1e-14;  // an invariant subspace: its eigenvalues are exact
    if (closed || k + 1 == limit || (k + 1) % kCheckEvery == 0) {
      RadiusEstimate found = ritz(H, k + 1);
      if (closed || k + 1 == static_cast<int>(map.rows)) found.residual = closed ? rest : found.residual;
      if (closed || k + 1 == limit || found.residual < tolerance) return found;
    }
    for (double& x : w) x /= rest;
    basis.push_back(std::move(w));
  }
  return {};
}

}  // namespace rankscope
