// Singular values of many small float32 matrices on CUDA: one-sided Jacobi in shared memory, one matrix a
// block, one warp a pair of columns. The arithmetic is kernels/jacobi_math.h.
//
// What is turned is H A (or its transpose, where that is the taller), H a reflection that puts sqrt(rows)
// times the mean row first: the rest has the singular values of A without its mean row. First the rest alone
// becomes orthogonal, then all of it.
//
// Error: with c = 2^-23 (8 + max(rows, cols) / 4), each singular value of A is off by at most c sigma_1(A),
// and the largest of A without its mean row by at most c of itself: 4.8e-6 for 128 x 128. A turn is backward
// stable: both columns keep their lengths but for a rounding of each entry, cols - 1 times a sweep. Were all
// these roundings one way they would exceed c; of some thousands of matrices (attention from uniform to
// sharp, random, graded, without full rank, known) the worst reached 0.7 of it. What is left of cosines, up
// to jacobi::tolerance, is what their own sum is rounded by.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rankscope::cuda {

struct Spectra {
  int64_t rows = 1, cols = 1;
  int64_t count = 0;  // matrices
};

/// The longest side whose square still fits into a block's shared memory.
constexpr int64_t kLongestSpectra = 224;

constexpr bool spectra_fit(int64_t rows, int64_t cols) { return std::max(rows, cols) <= kLongestSpectra; }

/// The factor c.
constexpr double spectra_error(int64_t rows, int64_t cols) {
  return 0x1p-23 * (8.0 + static_cast<double>(std::max(rows, cols)) / 4.0);
}

/// a [count, rows, cols], neither side empty. sigma [count, min(rows, cols)]: descending. centered [count]:
/// the largest singular value of a matrix without its mean row. Both NaN for a matrix with an entry that is
/// not finite. sweeps [count]: over all pairs of columns, or -1 where they were not orthogonal after the
/// last.
void spectra(const Spectra& shape, const float* a, double* sigma, double* centered, int32_t* sweeps,
             void* stream);

}  // namespace rankscope::cuda
