#include "spectral/batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/small_spectra.h"
#include "ops/fused.h"
#include "spectral/norm.h"
#include "spectral/rows.h"

namespace rankscope {
namespace {

/// Many matrices [m, n] on the host, one behind the other.
struct Batch {
  at::Tensor x;
  int64_t m, n, count;
  double epsilon;

  explicit Batch(const at::Tensor& given) {
    if (given.dim() < 2)
      throw Error("a spectrum needs a matrix or a batch of matrices, but got " + std::to_string(given.dim()) +
                  " dimensions");
    if (given.scalar_type() != at::kFloat && given.scalar_type() != at::kDouble)
      throw Error(std::string("a spectrum needs float32 or float64 numbers, but got ") +
                  toString(given.scalar_type()));
    x = given.detach().to(at::kCPU).contiguous();
    m = given.size(-2), n = given.size(-1), count = m * n == 0 ? 0 : x.numel() / (m * n);
    epsilon = epsilon_of(given);
  }

  bool lanes_are_enough() const {
    return x.scalar_type() == at::kFloat && fused_kernels() && small_spectra_fit(m, n) &&
           2 * small_spectra_error(m, n) <= static_cast<double>(std::max(m, n)) * epsilon;
  }

  /// Matrix i in double precision; the float32 ones in a buffer that the thread keeps.
  const double* wide(int64_t i) const {
    if (x.scalar_type() == at::kDouble) return x.data_ptr<double>() + i * m * n;
    thread_local std::vector<double> kept;
    kept.resize(static_cast<size_t>(m * n));
    kernels::widen(x.data_ptr<float>() + i * m * n, m * n, kept.data());
    return kept.data();
  }
};

double centered_norm(const Batch& batch, const double* a) {
  return spectral_norm(dense_map(a, batch.m, batch.n, true)).value;
}

using Take = std::function<void(int64_t i, Spectrum spectrum, double centered_norm)>;

/// Matrices first .. first + shape.count - 1 through the lanes.
void lanes_take(const Batch& batch, int64_t first, const SmallSpectra& shape, const Take& take) {
  const auto each = static_cast<size_t>(shape.squares());
  std::vector<double> squares(static_cast<size_t>(shape.count) * each),
      norms(static_cast<size_t>(shape.count));
  const unsigned failed = small_spectra(shape, batch.x.data_ptr<float>() + first * batch.m * batch.n,
                                        squares.data(), norms.data());
  for (int64_t i = 0; i < shape.count; ++i) {
    if (failed & 1u << i) {
      const double* a = batch.wide(first + i);
      take(first + i, spectrum_exact(a, batch.m, batch.n, batch.epsilon), centered_norm(batch, a));
      continue;
    }
    Spectrum s{.rows = batch.m, .cols = batch.n, .epsilon = batch.epsilon, .route = "lanes"};
    const auto from = squares.begin() + i * shape.squares();
    if (!std::isnan(*from)) std::sort(from, from + shape.squares(), std::greater<>());
    s.sigma.assign(from, from + std::min(batch.m, batch.n));
    for (double& v : s.sigma) v = v < 0 ? 0.0 : std::sqrt(v);
    s.error = small_spectra_error(batch.m, batch.n) * s.largest();
    take(first + i, std::move(s), std::sqrt(norms[static_cast<size_t>(i)]));
  }
}

void through_lanes(const Batch& batch, const Take& take) {
  const int64_t group = small_spectra_group();
  parallel_over((batch.count + group - 1) / group, [&](int64_t g) {
    lanes_take(batch, g * group, {batch.m, batch.n, std::min(group, batch.count - g * group)}, take);
  });
}

}  // namespace

double epsilon_of(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                        : static_cast<double>(std::numeric_limits<float>::epsilon());
}

std::vector<Spectrum> spectra_of_batch(const at::Tensor& x) {
  const Batch batch(x);
  std::vector<Spectrum> out(static_cast<size_t>(batch.count));
  if (batch.lanes_are_enough())
    through_lanes(batch, [&](int64_t i, Spectrum s, double) { out[static_cast<size_t>(i)] = std::move(s); });
  else
    parallel_over(batch.count, [&](int64_t i) {
      out[static_cast<size_t>(i)] = spectrum_of(batch.wide(i), batch.m, batch.n, batch.epsilon);
    });
  return out;
}

std::vector<CenteredSpectrum> centered_spectra_of_batch(const at::Tensor& x) {
  const Batch batch(x);
  std::vector<CenteredSpectrum> out(static_cast<size_t>(batch.count));
  if (batch.lanes_are_enough())
    through_lanes(batch, [&](int64_t i, Spectrum s, double norm) {
      out[static_cast<size_t>(i)] = {std::move(s), norm};
    });
  else
    parallel_over(batch.count, [&](int64_t i) {
      const double* a = batch.wide(i);
      out[static_cast<size_t>(i)] = {spectrum_of(a, batch.m, batch.n, batch.epsilon),
                                     centered_norm(batch, a)};
    });
  return out;
}

}  // namespace rankscope
