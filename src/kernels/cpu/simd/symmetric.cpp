#include "kernels/cpu/symmetric.h"

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/simd/tridiagonal.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

constexpr int L = lanes<double>;
using V = Vec<double>;

double dot(const double* a, const double* b, int64_t from, int64_t end) {
  V s0{}, s1{};
  int64_t j = from;
  for (; j + 2 * L <= end; j += 2 * L) {
    s0 += load(a + j) * load(b + j);
    s1 += load(a + j + L) * load(b + j + L);
  }
  for (; j < end; j += L) s0 += load(a + j) * load(b + j);
  s0 += s1;
  double sum = 0;
  for (int w = 0; w < L; ++w) sum += s0[w];
  return sum;
}

/// Householder's reduction of a full symmetric matrix. What step k does to the rest, a -= v w^T + w v^T,
/// waits for the pass of the next one, which also needs a times its v: by symmetry the sum of the rows,
/// weighted. Rows have a whole number of vectors; v and w are 0 where they have no entry.
struct Reduction {
  int64_t n, row;  // entries of a row, with padding
  double *a, *v, *w, *v_last, *w_last;

  // Rows i .. i + B - 1; p += v_i row_i.
  template <int64_t B>
  void pass(int64_t i, int64_t from, double* p) {
    double* const rows = a + i * row;
    for (int64_t j = from; j < row; j += L) {
      const V right = load(v_last + j), left = load(w_last + j);
      V sum = load(p + j);
      for (int64_t b = 0; b < B; ++b) {
        const V t = load(rows + b * row + j) - v_last[i + b] * left - w_last[i + b] * right;
        store<double>(rows + b * row + j, t);
        sum += v[i + b] * t;
      }
      store<double>(p + j, sum);
    }
  }

  void run(double* d, double* e) {
    for (int64_t k = 0; k < n; ++k) {
      double* const pivot = a + k * row;
      d[k] = pivot[k], e[k] = 0;
      if (k + 1 == n) break;
      for (int64_t j = 0; j <= k; ++j) pivot[j] = 0;
      const int64_t from = (k + 1) / L * L;
      const double first = pivot[k + 1];
      e[k] = dot(pivot, pivot, from, row);
      const double length = root(e[k]), image = first > 0 ? -length : length, rest = e[k] - first * first;
      const double scale = rest > 0 ? 1 / (first - image) : 0, tau = rest > 0 ? (image - first) / image : 0;
      for (int64_t j = from; j < row; ++j) v[j] = pivot[j] * scale, w[j] = 0;
      v[k + 1] = 1;
      int64_t i = k + 1;
      for (; i + 4 <= n; i += 4) pass<4>(i, from, w);
      for (; i < n; ++i) pass<1>(i, from, w);
      for (int64_t j = from; j <= k; ++j) w[j] = 0;
      const double half = 0.5 * tau * dot(v, w, from, row);
      for (int64_t j = from; j < row; ++j) w[j] = tau * (w[j] - half * v[j]);
      double* const next = pivot + row;
      for (int64_t j = from; j < row; ++j) next[j] -= w[j] + w[k + 1] * v[j];
      double *const old_v = v_last, *const old_w = w_last;
      v_last = v, w_last = w, v = old_v, w = old_w;
    }
  }
};

}  // namespace

void tridiagonalise(int64_t n, const double* g, double* d, double* e) {
  const int64_t row = (n + L - 1) / L * L;
  auto* const a = static_cast<double*>(scratch(static_cast<size_t>((n + 4) * row) * sizeof(double)));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) a[i * row + j] = a[j * row + i] = g[i * n + j];
    for (int64_t j = n; j < row; ++j) a[i * row + j] = 0;
  }
  double* const vectors = a + n * row;
  for (int64_t j = 0; j < 4 * row; ++j) vectors[j] = 0;
  Reduction{n, row, a, vectors, vectors + row, vectors + 2 * row, vectors + 3 * row}.run(d, e);
}

unsigned tridiagonal_eigenvalues(int64_t count, int64_t n, const double* d, const double* e, double* values) {
  constexpr int W = kTridiagonalGroup;
  auto* const lanes_d = static_cast<double*>(scratch(static_cast<size_t>(2 * n * W) * sizeof(double)));
  double* const lanes_e = lanes_d + n * W;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t w = 0; w < W; ++w) {
      lanes_d[i * W + w] = w < count ? d[w * n + i] : 0;
      lanes_e[i * W + w] = w < count ? e[w * n + i] : 0;
    }
  const unsigned open = Tridiagonal<W>(n, lanes_d, lanes_e).solve();
  for (int64_t w = 0; w < count; ++w)
    for (int64_t i = 0; i < n; ++i) values[w * n + i] = lanes_d[i * W + w];
  return open & ((1u << count) - 1);
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
