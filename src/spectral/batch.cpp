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
#include "kernels/cpu/symmetric.h"
#include "ops/fused.h"
#include "spectral/norm.h"
#include "spectral/on_device.h"
#include "spectral/rows.h"
#include "spectral/token_batch.h"

namespace rankscope {
namespace {

void require_matrices(const at::Tensor& x) {
  if (x.dim() < 2)
    throw Error("a spectrum needs a matrix or a batch of matrices, but got " + std::to_string(x.dim()) +
                " dimensions");
  if (x.scalar_type() != at::kFloat && x.scalar_type() != at::kDouble)
    throw Error(std::string("a spectrum needs float32 or float64 numbers, but got ") +
                toString(x.scalar_type()));
}

/// Whether a route with this error, as a part of sigma_1, leaves the numerical rank its meaning.
bool is_enough(double error, int64_t m, int64_t n, double epsilon) {
  return 2 * error <= static_cast<double>(std::max(m, n)) * epsilon;
}

/// Many matrices [m, n] on the host, one behind the other.
struct Batch {
  at::Tensor x;
  int64_t m, n, count;
  double epsilon;

  explicit Batch(const at::Tensor& given)
      : x(given.detach().to(at::kCPU).contiguous()),
        m(given.size(-2)),
        n(given.size(-1)),
        count(m * n == 0 ? 0 : x.numel() / (m * n)),
        epsilon(epsilon_of(given)) {}

  bool lanes_are_enough() const {
    return x.scalar_type() == at::kFloat && fused_kernels() && small_spectra_fit(m, n) &&
           is_enough(small_spectra_error(m, n), m, n, epsilon);
  }

  /// Matrix i in double precision; the float32 ones in a buffer that the thread keeps.
  const double* wide(int64_t i) const {
    if (x.scalar_type() == at::kDouble) return x.data_ptr<double>() + i * m * n;
    thread_local std::vector<double> kept;
    kept.resize(static_cast<size_t>(m * n));
    load(i, kept.data());
    return kept.data();
  }
  void load(int64_t i, double* to) const {
    if (x.scalar_type() == at::kDouble)
      std::copy_n(x.data_ptr<double>() + i * m * n, m * n, to);
    else
      kernels::widen(x.data_ptr<float>() + i * m * n, m * n, to);
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

/// Whether one reduction in double precision gives both spectra of a matrix, with and without its mean row.
bool one_reduction_is_enough(const Batch& batch) {
  return fused_kernels() && gram_is_enough(batch.m, batch.n, batch.epsilon) &&
         tridiagonal_fits(std::min(batch.m, batch.n) + 1);
}

/// A few matrices a thread, whose eigenvalues are then found together.
void through_one_reduction(const Batch& batch, const Take& take) {
  const int64_t threads = omp_get_max_threads(),
                group = std::clamp<int64_t>((batch.count + threads - 1) / threads, 1, kTridiagonalGroup / 2);
  parallel_over((batch.count + group - 1) / group, [&](int64_t g) {
    const int64_t first = g * group, count = std::min(group, batch.count - first);
    TokenSpectraBatch found(static_cast<size_t>(count));
    std::vector<double> mean(static_cast<size_t>(batch.n)), own(static_cast<size_t>(batch.m * batch.n));
    for (int64_t i = 0; i < count; ++i) {
      batch.load(first + i, own.data());
      kernels::row_mean(own.data(), batch.m, batch.n, mean.data());
      kernels::subtract_row(own.data(), batch.m, batch.n, mean.data());
      found.add(static_cast<size_t>(i), own.data(), mean.data(), batch.m, batch.n, batch.epsilon);
    }
    found.compute();
    for (int64_t i = 0; i < count; ++i) {
      const TokenSpectra& s = found.of(static_cast<size_t>(i));
      take(first + i, s.plain, s.centered.largest());
    }
  });
}

/// Matrices on a GPU, which stay there; only singular values come to the host.
bool device_is_enough(const at::Tensor& x) {
  return x.is_cuda() && fused_for(x) && x.numel() > 0 &&
         gram_is_enough(x.size(-2), x.size(-1), epsilon_of(x));
}

void through_device(const at::Tensor& given, const Take& take) {
  const int64_t m = given.size(-2), n = given.size(-1), each = std::min(m, n);
  const SigmaPair found = singular_values(centered_rows(given.detach().reshape({-1, m, n})), 1);
  const at::Tensor plain = found.plain.cpu(), norms = found.centered.select(1, 0).cpu();
  for (int64_t i = 0; i < plain.size(0); ++i) {
    const double* from = plain.data_ptr<double>() + i * each;
    std::vector<double> squares(from, from + each);
    for (double& v : squares) v *= v;
    take(i, spectrum_of_squares(std::move(squares), m, n, epsilon_of(given)), norms[i].item<double>());
  }
}

/// Every matrix; its centred norm too where it comes for nothing or is asked for.
template <class Result, class Fill>
std::vector<Result> each_of(const at::Tensor& x, bool with_norm, const Fill& fill) {
  require_matrices(x);
  const int64_t size = x.size(-2) * x.size(-1);
  std::vector<Result> out(static_cast<size_t>(size == 0 ? 0 : x.numel() / size));
  const Take take = [&](int64_t i, Spectrum s, double norm) {
    out[static_cast<size_t>(i)] = fill(std::move(s), norm);
  };
  if (device_is_enough(x)) {
    through_device(x, take);
    return out;
  }
  const Batch batch(x);
  if (batch.lanes_are_enough())
    through_lanes(batch, take);
  else if (with_norm && one_reduction_is_enough(batch))
    through_one_reduction(batch, take);
  else
    parallel_over(batch.count, [&](int64_t i) {
      const double* a = batch.wide(i);
      take(i, spectrum_of(a, batch.m, batch.n, batch.epsilon), with_norm ? centered_norm(batch, a) : 0.0);
    });
  return out;
}

}  // namespace

double epsilon_of(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                        : static_cast<double>(std::numeric_limits<float>::epsilon());
}

std::vector<Spectrum> spectra_of_batch(const at::Tensor& x) {
  return each_of<Spectrum>(x, false, [](Spectrum s, double) { return s; });
}

std::vector<CenteredSpectrum> centered_spectra_of_batch(const at::Tensor& x) {
  return each_of<CenteredSpectrum>(x, true, [](Spectrum s, double norm) {
    return CenteredSpectrum{std::move(s), norm};
  });
}

}  // namespace rankscope
