#include "kernels/cpu/rows.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/isa.h"

namespace rankscope::kernels {

RANKSCOPE_CLONES void widen(const float* from, int64_t count, double* to) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

RANKSCOPE_CLONES void row_mean(const double* a, int64_t m, int64_t n, double* mean) {
  std::fill(mean, mean + n, 0.0);
  for (int64_t i = 0; i < m; ++i) {
    const double* row = a + i * n;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) mean[j] += row[j];
  }
  const auto count = static_cast<double>(m);
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) mean[j] /= count;
}

RANKSCOPE_CLONES void subtract_row(double* a, int64_t m, int64_t n, const double* mean) {
  for (int64_t i = 0; i < m; ++i) {
    double* row = a + i * n;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) row[j] -= mean[j];
  }
}

RANKSCOPE_CLONES double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

double sum_squares(const double* a, int64_t n) { return dot(a, a, n); }

RANKSCOPE_CLONES void add_scaled(double* y, const double* x, double s, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += s * x[i];
}

RANKSCOPE_CLONES double add_absolute(const double* x, int64_t n, double* columns) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; ++j) {
    const double v = std::fabs(x[j]);
    columns[j] += v;
    sum += v;
  }
  return sum;
}

RANKSCOPE_CLONES void multiply(const double* a, int64_t m, int64_t n, const double* x, double* y) {
  int64_t i = 0;
  for (; i + 4 <= m;
       i += 4) {  // four rows at a time: x is read once for all, and the sums do not wait on each other
    const double *r0 = a + i * n, *r1 = r0 + n, *r2 = r1 + n, *r3 = r2 + n;
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t j = 0; j < n; ++j) {
      s0 += r0[j] * x[j];
      s1 += r1[j] * x[j];
      s2 += r2[j] * x[j];
      s3 += r3[j] * x[j];
    }
    y[i] = s0, y[i + 1] = s1, y[i + 2] = s2, y[i + 3] = s3;
  }
  for (; i < m; ++i) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) sum += a[i * n + j] * x[j];
    y[i] = sum;
  }
}

RANKSCOPE_CLONES void multiply_transposed(const double* a, int64_t m, int64_t n, const double* y, double* x) {
  std::fill(x, x + n, 0.0);
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) {
    const double *r0 = a + i * n, *r1 = r0 + n, *r2 = r1 + n, *r3 = r2 + n;
    const double y0 = y[i], y1 = y[i + 1], y2 = y[i + 2], y3 = y[i + 3];
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) x[j] += y0 * r0[j] + y1 * r1[j] + y2 * r2[j] + y3 * r3[j];
  }
  for (; i < m; ++i) {
    const double* row = a + i * n;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) x[j] += y[i] * row[j];
  }
}

double entropy(const float* p, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    if (p[i] > 0) sum -= static_cast<double>(p[i]) * std::log(static_cast<double>(p[i]));
  return sum;
}

double entropy(const double* p, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    if (p[i] > 0) sum -= p[i] * std::log(p[i]);
  return sum;
}

RANKSCOPE_CLONES void add_squares(double* columns, const double* row, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) columns[j] += row[j] * row[j];
}

RANKSCOPE_CLONES void add_row(double* columns, const float* row, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) columns[j] += static_cast<double>(row[j]);
}

RANKSCOPE_CLONES void add_row(double* columns, const double* row, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) columns[j] += row[j];
}

}  // namespace rankscope::kernels
