// Householder bidiagonalisation of several matrices at once, one per SIMD lane, and every step in one pass
// over them.
//
// Element (i, j) of lane w lies at a[(i * cols + j) * W + w]. Rows come first: step k maps row k to
// (alpha_k, 0, ..), then column k below it to (beta_k, 0, ..), which leaves a lower bidiagonal matrix. What
// both reflections do to the rest, a -= x v^T + u y^T, waits for the pass of the next step, which also needs
// A v and A^T u. u is known only after A v, so A^T u is read off A^T c, where c is the column that u is made
// from: it follows row by row as soon as x has its entry. A few rows stay in the first cache between the two
// uses.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace rankscope::simd::RANKSCOPE_SIMD {

template <int W>
struct Bidiagonal {
  using V = Vec<float, W>;
  static constexpr int64_t block = vector_bytes > 32 ? 4 : 2;  // rows in registers at a time

  int64_t rows = 0, cols = 0;
  V* a = nullptr;
  V *alpha = nullptr, *beta = nullptr;  // [min(rows, cols)]; the last beta is 0 where rows <= cols
  V *v = nullptr, *v_last = nullptr, *y = nullptr, *z = nullptr;  // [cols]
  V *x = nullptr, *u = nullptr;                                   // [rows]

  static int64_t vectors(int64_t rows, int64_t cols) {
    return rows * cols + 2 * (rows < cols ? rows : cols) + 4 * cols + 2 * rows;
  }

  Bidiagonal(int64_t m, int64_t n, V* memory) : rows(m), cols(n), a(memory) {
    const int64_t steps = m < n ? m : n;
    alpha = a + m * n, beta = alpha + steps;
    v = beta + steps, v_last = v + n, y = v_last + n, z = y + n;
    x = z + n, u = x + m;
  }

  void reduce() {
    const int64_t steps = rows < cols ? rows : cols;
    for (int64_t k = 0; k < steps; ++k) {
      V* const row = a + k * cols;
      const Reflector right = reflector(row + k, cols - k, v + k);
      alpha[k] = right.image;
      beta[k] = V{};
      if (k + 1 == rows) break;
      for (int64_t j = k + 1; j < cols; ++j) z[j] = V{};
      int64_t i = k + 1;
      for (; i + block <= rows; i += block) pass<block>(i, k, right.tau);
      for (; i < rows; ++i) pass<1>(i, k, right.tau);

      const Reflector left = reflector(u + k + 1, rows - k - 1, u + k + 1);
      beta[k] = left.image;
      V ux{};
      for (i = k + 1; i < rows; ++i) ux += u[i] * x[i];
      V* const next = row + cols;
      for (int64_t j = k + 1; j < cols; ++j) {
        const V t = left.tau * (left.scale * (z[j] - left.image * next[j]) - ux * v[j]);
        next[j] -= x[k + 1] * v[j] + t;
        z[j] = t;
      }
      V* const old_y = y;
      y = z, z = old_y;
      V* const old_v = v_last;
      v_last = v, v = old_v;
    }
  }

 private:
  using Wide = Vec<double, W>;
  struct Reflector {
    V image, tau, scale;
  };

  /// (I - tau w w^T) p = (image, 0, ..) with w = scale (p - (image, 0, ..)), whose first entry is 1. tau is
  /// made from w as it was rounded, with sums in double precision: an identity has the same rounding in every
  /// step, and reflections that all stretch a little would add up.
  static Reflector reflector(const V* p, int64_t count, V* w) {
    const Wide rest = squares(p + 1, count - 1), first = __builtin_convertvector(p[0], Wide);
    const Wide length = roots(rest + first * first), image = first > 0 ? -length : length;
    const auto none = rest == 0;  // nothing to map away
    const Wide scale = none ? Wide{} : 1.0 / (first - image);
    const V factor = __builtin_convertvector(scale, V);
    w[0] = splat<float, W>(1.0f);
    for (int64_t j = 1; j < count; ++j) w[j] = p[j] * factor;
    const Wide tau = none ? Wide{} : 2.0 / (1.0 + squares(w + 1, count - 1));
    return {__builtin_convertvector(none ? first : image, V), __builtin_convertvector(tau, V), factor};
  }

  static Wide squares(const V* p, int64_t count) {
    Wide s0{}, s1{};
    int64_t j = 0;
    for (; j + 2 <= count; j += 2) {
      const Wide a = __builtin_convertvector(p[j], Wide), b = __builtin_convertvector(p[j + 1], Wide);
      s0 += a * a, s1 += b * b;
    }
    if (j < count) {
      const Wide a = __builtin_convertvector(p[j], Wide);
      s0 += a * a;
    }
    return s0 + s1;
  }

  static Wide roots(Wide s) {
    Wide r{};
    for (int w = 0; w < W; ++w) r[w] = root(s[w]);
    return r;
  }

  // Rows i .. i + B - 1 of step k.
  template <int64_t B>
  void pass(int64_t i, int64_t k, V tau) {
    V* const p = a + i * cols;
    V xs[B], us[B], dots[B];
    for (int64_t b = 0; b < B; ++b) xs[b] = x[i + b], us[b] = u[i + b], dots[b] = V{};
    if (k > 0) {
      for (int64_t j = k; j < cols; ++j) {
        const V right = v_last[j], left = y[j], now = v[j];
        for (int64_t b = 0; b < B; ++b) {
          const V t = p[b * cols + j] - xs[b] * right - us[b] * left;
          p[b * cols + j] = t;
          dots[b] += t * now;
        }
      }
    } else {
      for (int64_t j = k; j < cols; ++j)
        for (int64_t b = 0; b < B; ++b) dots[b] += p[b * cols + j] * v[j];
    }
    for (int64_t b = 0; b < B; ++b) {
      xs[b] = x[i + b] = tau * dots[b];
      us[b] = u[i + b] = p[b * cols + k] - xs[b];
    }
    for (int64_t j = k + 1; j < cols; ++j) {
      V t = z[j];
      for (int64_t b = 0; b < B; ++b) t += us[b] * p[b * cols + j];
      z[j] = t;
    }
  }
};

}  // namespace rankscope::simd::RANKSCOPE_SIMD
