#include "kernels/cpu/small_spectra.h"

#include "kernels/cpu/simd/bidiagonal.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cpu/simd/tridiagonal.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

// Eight even where sixteen fit a register: with sixteen, the vectors of one step fill the first cache.
constexpr int W = lanes<float> < 8 ? lanes<float> : 8;
// The QL iteration waits for its divisions: two groups of lanes take turns.
constexpr int group = 2 * W;
using V = Vec<float, W>;
using Wide = Vec<double, W>;

/// One matrix, or a row of zeros over and over.
struct Source {
  const float* a = nullptr;
  int64_t row = 0;                              // from one row to the next
  float factor = 1;                             // a power of two that brings the largest entry below 1
  const float *high = nullptr, *low = nullptr;  // the column means, times factor, are the sum of both
};

struct Size {
  int exponent = 0;  // the largest entry is below 2^exponent
  bool finite = true;
};

// The size of a [m, n] and its column means.
Size read(const float* a, int64_t m, int64_t n, float* high, float* low, double* sums) {
  V largest{}, zero{};
  int64_t j = 0;
  for (; j + W <= n; j += W) {
    Wide sum{};
    for (int64_t i = 0; i < m; ++i) {
      const V x = load<float, W>(a + i * n + j), size = x < 0 ? -x : x;
      sum += __builtin_convertvector(x, Wide);
      largest = size > largest ? size : largest;
      zero += 0.0f * x;  // NaN exactly where x is not finite
    }
    store_vec<double, W>(sums + j, sum);
  }
  for (; j < n; ++j) {
    sums[j] = 0;
    for (int64_t i = 0; i < m; ++i) {
      const float x = a[i * n + j], size = x < 0 ? -x : x;
      sums[j] += static_cast<double>(x);
      largest[0] = size > largest[0] ? size : largest[0];
      zero[0] += 0.0f * x;
    }
  }
  Size size;
  float most = 0x1p-100f;  // below, the factor would not be finite
  for (int w = 0; w < W; ++w) {
    most = largest[w] > most ? largest[w] : most;
    size.finite = size.finite && zero[w] == 0;
  }
  __builtin_frexpf(most, &size.exponent);
  const double factor = __builtin_ldexp(1, -size.exponent);
  for (j = 0; j < n; ++j) {
    const double mean = sums[j] * factor / static_cast<double>(m);
    high[j] = static_cast<float>(mean);
    low[j] = static_cast<float>(mean - static_cast<double>(high[j]));
  }
  return size;
}

// Row 0 of the lanes: sqrt(m) times the mean; row i + 1: row i of the matrices without it.
void fill(const Source* sources, int64_t m, int64_t n, V* to) {
  const float size = root(static_cast<float>(m));
  const auto columns = [&](int64_t j, int count, int64_t i) {
    V rows[W];
    for (int w = 0; w < W; ++w) {
      const Source& s = sources[w];
      const float* const x = s.a + (i - 1) * s.row + j;
      if (count == W) {
        const V high = load<float, W>(s.high + j), low = load<float, W>(s.low + j);
        rows[w] = i == 0 ? size * high : (load<float, W>(x) * s.factor - high) - low;
      } else {
        rows[w] = V{};
        for (int c = 0; c < count; ++c)
          rows[w][c] = i == 0 ? size * s.high[j + c] : (x[c] * s.factor - s.high[j + c]) - s.low[j + c];
      }
    }
    transpose<W>(rows);
    for (int c = 0; c < count; ++c) to[i * n + j + c] = rows[c];
  };
  for (int64_t i = 0; i <= m; ++i) {
    int64_t j = 0;
    for (; j + W <= n; j += W) columns(j, W, i);
    if (j < n) columns(j, static_cast<int>(n - j), i);
  }
}

}  // namespace

int64_t small_spectra_group() { return group; }

unsigned small_spectra(const SmallSpectra& s, const float* a, double* squares, double* centered) {
  const int64_t m = s.rows, n = s.cols, steps = s.squares();
  const int64_t vectors = Bidiagonal<W>::vectors(m + 1, n);
  auto* const memory = static_cast<V*>(scratch(static_cast<size_t>(vectors) * sizeof(V) +
                                               static_cast<size_t>(2 * steps * group + n) * sizeof(double) +
                                               static_cast<size_t>((2 * group + 1) * n) * sizeof(float)));
  Bidiagonal<W> b(m + 1, n, memory);
  auto* const d = reinterpret_cast<double*>(memory + vectors);
  double *const e = d + steps * group, *const sums = e + steps * group;
  auto* const means = reinterpret_cast<float*>(sums + n);
  float* const zeros = means + 2 * group * n;
  for (int64_t j = 0; j < n; ++j) zeros[j] = 0;

  double first[group], back[group];  // alpha_0, and what undoes the scaling of the squares
  for (int half = 0; half < group; half += W) {
    Source sources[W];
    for (int w = 0; w < W; ++w) {
      const int64_t i = half + w;
      sources[w] = {zeros, 0, 1, zeros, zeros};
      back[i] = 1;
      if (i >= s.count) continue;
      float *const high = means + 2 * i * n, *const low = high + n;
      const Size size = read(a + i * m * n, m, n, high, low, sums);
      back[i] = size.finite ? __builtin_ldexp(1, 2 * size.exponent) : __builtin_nan("");
      if (size.finite) sources[w] = {a + i * m * n, n, __builtin_ldexpf(1, -size.exponent), high, low};
    }
    const bool used = half < s.count;
    if (used) fill(sources, m, n, b.a);
    if (used) b.reduce();
    // L^T L of the lower bidiagonal L, without alpha_0, which is all that the mean's row leaves: that of R.
    for (int64_t i = 0; i < steps; ++i)
      for (int w = 0; w < W; ++w) {
        const double alpha = used ? b.alpha[i][w] : 0, beta = used ? b.beta[i][w] : 0;
        const double next = used && i + 1 < steps ? b.alpha[i + 1][w] : 0, off = beta * next;
        if (i == 0) first[half + w] = alpha * alpha;
        d[i * group + half + w] = (i > 0 ? alpha * alpha : 0) + beta * beta;
        e[i * group + half + w] = off * off;
      }
  }
  Tridiagonal<group> t(steps, d, e);
  double norms[group];
  t.largest(norms);
  for (int i = 0; i < group; ++i) d[i] += first[i];
  const unsigned open = t.solve();
  for (int64_t i = 0; i < s.count; ++i) {
    centered[i] = norms[i] * back[i];
    for (int64_t k = 0; k < steps; ++k) squares[i * steps + k] = d[k * group + i] * back[i];
  }
  return open & ((1u << s.count) - 1);
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
