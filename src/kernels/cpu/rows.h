// Loops over row-major matrices of doubles and over rows of floats: means, norms, products with a vector.
#pragma once

#include <cstdint>

namespace rankscope::kernels {

void widen(const float* from, int64_t count, double* to);

/// mean [n] of the rows of a [m, n].
void row_mean(const double* a, int64_t m, int64_t n, double* mean);
/// Takes `mean` off every row.
void subtract_row(double* a, int64_t m, int64_t n, const double* mean);

double dot(const double* a, const double* b, int64_t n);
double sum_squares(const double* a, int64_t n);
/// y += s x.
void add_scaled(double* y, const double* x, double s, int64_t n);

/// Sum of absolute values of x; adds each to columns [n].
double add_absolute(const double* x, int64_t n, double* columns);

/// y [m] = a x, for a [m, n].
void multiply(const double* a, int64_t m, int64_t n, const double* x, double* y);
/// x [n] = a^T y.
void multiply_transposed(const double* a, int64_t m, int64_t n, const double* y, double* x);

/// -sum p log p over the entries above zero.
double entropy(const float* p, int64_t n);
double entropy(const double* p, int64_t n);

/// columns [n] += row [n]^2.
void add_squares(double* columns, const double* row, int64_t n);
/// columns [n] += row [n].
void add_row(double* columns, const float* row, int64_t n);
void add_row(double* columns, const double* row, int64_t n);

}  // namespace rankscope::kernels
