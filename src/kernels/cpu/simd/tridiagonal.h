// Eigenvalues of several symmetric tridiagonal matrices at once, one per SIMD lane, in double precision: the
// QL iteration without square roots of Pal, Walker and Kahan. Lane w of diagonal entry i lies at
// d[i * W + w], of the square of the entry between i and i + 1 at e[i * W + w]. Entries below 2^-53 of the
// largest row sum count as zero, so each eigenvalue is off by a few times that, absolutely.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace rankscope::simd::RANKSCOPE_SIMD {

template <int W>
class Tridiagonal {
 public:
  static constexpr int parts = W * static_cast<int>(sizeof(double)) / vector_bytes > 0
                                   ? W* static_cast<int>(sizeof(double)) / vector_bytes
                                   : 1;
  static constexpr int width = W / parts;
  using V = Vec<double, width>;

  Tridiagonal(int64_t n, double* d, double* e) : n_(n), d_(d), e_(e) {}

  /// d becomes the eigenvalues in no order; e is lost. Bit w: lane w has not converged.
  unsigned solve() {
    int64_t first[W];  // of what is not yet diagonal
    double floor[W], shift[W];
    for (int w = 0; w < W; ++w) {
      const double bound = row_sum(w);
      floor[w] = 0x1p-106 * bound * bound;
      first[w] = 0;
    }
    unsigned open = (1u << W) - 1;
    for (int64_t sweep = 0; sweep < most_sweeps * n_; ++sweep) {
      int64_t lowest = n_;
      for (int w = 0; w < W; ++w) {
        int64_t& l = first[w];
        // Negated, so that a NaN ends here.
        while (l + 1 < n_ && !(e_[l * W + w] > floor[w])) e_[l++ * W + w] = 0;
        shift[w] = 0;
        if (l + 1 >= n_) {
          open &= ~(1u << w);
          continue;
        }
        shift[w] = shift_at(l, w);
        lowest = l < lowest ? l : lowest;
      }
      if (open == 0) break;
      step(first, lowest, shift);
    }
    return open;
  }

  /// The largest eigenvalue of every lane, by bisection between the largest diagonal entry and the largest
  /// row sum; within 2^-40 of that distance.
  void largest(double* out) const {
    double low[W], high[W], middle[W];
    for (int w = 0; w < W; ++w) {
      high[w] = row_sum(w), low[w] = 0;
      for (int64_t i = 0; i < n_; ++i) low[w] = d_[i * W + w] > low[w] ? d_[i * W + w] : low[w];
    }
    for (int round = 0; round < 40; ++round) {
      for (int w = 0; w < W; ++w) middle[w] = 0.5 * (low[w] + high[w]);
      bool below[W];
      below_largest(middle, below);
      for (int w = 0; w < W; ++w) (below[w] ? low : high)[w] = middle[w];
    }
    for (int w = 0; w < W; ++w) out[w] = 0.5 * (low[w] + high[w]);
  }

 private:
  static constexpr int64_t most_sweeps = 30;  // on average; two are usual

  double row_sum(int w) const {
    double bound = 0, before = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const double after = i + 1 < n_ ? root(e_[i * W + w]) : 0, d = d_[i * W + w];
      const double sum = (d < 0 ? -d : d) + before + after;
      bound = sum > bound ? sum : bound;
      before = after;
    }
    return bound;
  }

  // Wilkinson's: the eigenvalue of the leading 2 x 2 nearer to its first entry.
  double shift_at(int64_t l, int w) const {
    const double p = d_[l * W + w], off = root(e_[l * W + w]);
    const double s = (d_[(l + 1) * W + w] - p) / (2 * off), r = root(s * s + 1);
    return p - off / (s < 0 ? s - r : s + r);
  }

  // One sweep from the last row up to the lowest of `first`. A lane is diagonal above its own first row and
  // stays as it is there: what it becomes must not depend on the others.
  void step(const int64_t* first, int64_t lowest, const double* shifts) {
    constexpr double tiny = 0x1p-900;
    double starts[W];
    for (int w = 0; w < W; ++w) starts[w] = static_cast<double>(first[w]);
    V sigma[parts], start[parts], c[parts], s[parts], gamma[parts], p[parts], below[parts];
    for (int q = 0; q < parts; ++q) {
      sigma[q] = load<double, width>(shifts + q * width);
      start[q] = load<double, width>(starts + q * width);
      c[q] = splat<double, width>(1.0), s[q] = V{};
      below[q] = load<double, width>(d_ + (n_ - 1) * W + q * width);  // d of the row under this one
      gamma[q] = below[q] - sigma[q];
      p[q] = gamma[q] * gamma[q];
    }
    for (int64_t i = n_ - 2; i >= lowest; --i)
      for (int q = 0; q < parts; ++q) {
        double *const d = d_ + i * W + q * width, *const e = e_ + i * W + q * width;
        const V b = load<double, width>(e), alpha = load<double, width>(d), r = p[q] + b;
        const V row = splat<double, width>(static_cast<double>(i));
        store_vec<double, width>(e + W, s[q] * r);
        const auto none = b <= tiny, lost = p[q] <= tiny;
        const V inverse = 1.0 / r, ratio = r / p[q], old_c = c[q], old = gamma[q];
        c[q] = none ? splat<double, width>(1.0) : p[q] * inverse;
        s[q] = none ? V{} : b * inverse;
        gamma[q] = c[q] * (alpha - sigma[q]) - s[q] * old;
        const V next = old + (row < start[q] ? sigma[q] : alpha - gamma[q]);
        store_vec<double, width>(d + W, row + 1 < start[q] ? below[q] : next);
        below[q] = alpha;
        const V square = gamma[q] * gamma[q];
        p[q] = none ? square : lost ? old_c * b : square * ratio;
      }
    for (int q = 0; q < parts; ++q) {
      const V row = splat<double, width>(static_cast<double>(lowest));
      store_vec<double, width>(e_ + lowest * W + q * width, s[q] * p[q]);
      store_vec<double, width>(d_ + lowest * W + q * width, row < start[q] ? below[q] : sigma[q] + gamma[q]);
    }
  }

  // Whether x lies below the largest eigenvalue: x I - T has a pivot that is not positive.
  void below_largest(const double* x, bool* below) const {
    for (int q = 0; q < parts; ++q) {
      const V here = load<double, width>(x + q * width);
      V pivot = splat<double, width>(1.0), before = V{}, least = splat<double, width>(1.0);
      for (int64_t i = 0; i < n_; ++i) {
        pivot = here - load<double, width>(d_ + i * W + q * width) - before / pivot;
        before = load<double, width>(e_ + i * W + q * width);
        least = pivot < least ? pivot : least;
      }
      for (int w = 0; w < width; ++w) below[q * width + w] = !(least[w] > 0);
    }
  }

  int64_t n_;
  double *d_, *e_;
};

}  // namespace rankscope::simd::RANKSCOPE_SIMD
