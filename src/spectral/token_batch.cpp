#include "spectral/token_batch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/symmetric.h"
#include "ops/fused.h"
#include "spectral/dense.h"

namespace rankscope {
namespace {

Spectrum not_a_number(int64_t m, int64_t n, double epsilon) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  Spectrum s{.rows = m, .cols = n, .epsilon = epsilon, .error = nan, .route = "gram"};
  s.sigma.assign(static_cast<size_t>(std::min(m, n)), nan);
  return s;
}

/// Eigenvalues of a tridiagonal matrix that the lanes gave up on.
std::vector<double> by_lapack(const std::vector<double>& d, const std::vector<double>& e) {
  const size_t n = d.size();
  std::vector<double> full(n * n, 0.0), values(n);
  for (size_t i = 0; i < n; ++i) {
    full[i * n + i] = d[i];
    if (i + 1 < n) full[i * n + i + 1] = std::sqrt(e[i]);
  }
  if (!dense::symmetric_eigenvalues(full.data(), static_cast<int64_t>(n), values.data()))
    throw Error("the eigenvalues of a tridiagonal matrix did not converge");
  return values;
}

}  // namespace

struct TokenSpectraBatch::Lane {
  Slot* slot;
  bool centered;
  std::vector<double> d, e;
};

void TokenSpectraBatch::add(size_t at, const double* centered, const double* mean, int64_t m, int64_t n,
                            double epsilon) {
  Slot& slot = slots_[at];
  slot.m = m, slot.n = n, slot.epsilon = epsilon, slot.with_mean = mean != nullptr;
  const int64_t k = std::min(m, n), border = slot.with_mean ? 1 : 0, size = k + border;
  if (!fused_kernels() || !gram_is_enough(m, n, epsilon) || !tridiagonal_fits(size)) {
    if (slot.with_mean)
      slot.found = token_spectra(centered, mean, m, n, epsilon);
    else
      slot.found.centered = spectrum_of(centered, m, n, epsilon);
    return;
  }
  thread_local std::vector<double> gram, bordered;
  gram.resize(static_cast<size_t>(k * k));
  dense::gram(centered, m, n, gram.data());
  bordered.assign(static_cast<size_t>(size * size), 0.0);
  double trace = 0;
  for (int64_t i = 0; i < k; ++i) {
    std::copy_n(gram.data() + i * k + i, k - i, bordered.data() + (i + border) * (size + 1));
    trace += gram[static_cast<size_t>(i * (k + 1))];
  }
  if (slot.with_mean) {
    const double offset = static_cast<double>(m) * kernels::sum_squares(mean, n);
    trace += offset;
    if (m <= n) {
      bordered[0] = offset;
      kernels::multiply(centered, m, n, mean, bordered.data() + 1);
      for (int64_t i = 1; i <= k; ++i) bordered[static_cast<size_t>(i)] *= std::sqrt(static_cast<double>(m));
    } else {
      slot.mean_square = offset;
      std::copy_n(mean, n, bordered.data() + 1);
    }
  }
  if (!std::isfinite(trace)) {
    slot.found = {not_a_number(m, n, epsilon), not_a_number(m, n, epsilon)};
    return;
  }
  slot.open = true;
  slot.d.resize(static_cast<size_t>(size)), slot.e.resize(static_cast<size_t>(size));
  tridiagonalise(size, bordered.data(), slot.d.data(), slot.e.data());
}

void TokenSpectraBatch::compute() {
  std::vector<Lane> lanes;
  for (Slot& slot : slots_) {
    if (!slot.open) continue;
    const auto from = slot.with_mean ? 1 : 0;
    lanes.push_back(
        {&slot, true, {slot.d.begin() + from, slot.d.end()}, {slot.e.begin() + from, slot.e.end()}});
    if (!slot.with_mean) continue;
    Lane plain{&slot, false, slot.d, slot.e};
    if (slot.m > slot.n) {  // the border was only there to start from the mean
      plain = lanes.back();
      plain.centered = false;
      plain.d[0] += slot.mean_square;
    }
    lanes.push_back(std::move(plain));
  }
  constexpr size_t group = kTridiagonalGroup;
  parallel_over(static_cast<int64_t>((lanes.size() + group - 1) / group), [&](int64_t g) {
    const size_t first = static_cast<size_t>(g) * group;
    solve(lanes.data() + first, std::min(group, lanes.size() - first));
  });
}

void TokenSpectraBatch::solve(Lane* lanes, size_t count) {
  size_t longest = 0;
  for (size_t i = 0; i < count; ++i) longest = std::max(longest, lanes[i].d.size());
  std::vector<double> d(count * longest, 0.0), e(d.size(), 0.0), values(d.size());
  for (size_t i = 0; i < count; ++i) {
    std::copy(lanes[i].d.begin(), lanes[i].d.end(), d.begin() + static_cast<int64_t>(i * longest));
    std::copy(lanes[i].e.begin(), lanes[i].e.end(), e.begin() + static_cast<int64_t>(i * longest));
  }
  const unsigned failed = tridiagonal_eigenvalues(static_cast<int64_t>(count), static_cast<int64_t>(longest),
                                                  d.data(), e.data(), values.data());
  for (size_t i = 0; i < count; ++i) {
    const Lane& lane = lanes[i];
    const double* own = values.data() + i * longest;
    std::vector<double> squares(own, own + lane.d.size());
    if (failed & 1u << i) squares = by_lapack(lane.d, lane.e);
    Slot& slot = *lane.slot;
    (lane.centered ? slot.found.centered : slot.found.plain) =
        spectrum_of_squares(std::move(squares), slot.m, slot.n, slot.epsilon);
  }
}

}  // namespace rankscope
