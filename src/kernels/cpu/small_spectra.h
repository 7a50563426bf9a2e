// Singular values of many small float32 matrices, one matrix per SIMD lane: Householder bidiagonalisation in
// float32, then a QL iteration in double precision.
//
// What is reduced is R = (I - J) A, J = 1 1^T / rows, under the row sqrt(rows) mean^T: together they have the
// singular values of A, and without that row those of R, which keep their digits where the rows are nearly
// alike.
//
// Error: with c = 2^-23 (8 + max(rows, cols) / 3), each singular value of A is off by at most c sigma_1(A),
// the norm of R by at most c of itself: 6.0e-6 for 128 x 128. Reflections are backward stable; roundings that
// do not all point one way add up to a tenth of it, and those of an identity, the same in every step, to 0.8
// of it.
#pragma once

#include <cstdint>

namespace rankscope {

struct SmallSpectra {
  int64_t rows = 0, cols = 0;
  int64_t count = 0;  // matrices, at most small_spectra_group()

  /// Squares per matrix: one more than singular values where there are fewer rows than columns. It is a zero.
  int64_t squares() const { return rows < cols ? rows + 1 : cols; }
};

/// Matrices that one call takes.
int64_t small_spectra_group();
/// True where a group stays in a cache of the second level: beyond, LAPACK's blocks are faster.
bool small_spectra_fit(int64_t rows, int64_t cols);
/// The factor c.
double small_spectra_error(int64_t rows, int64_t cols);

/// a [count, rows, cols]. squares [count, squares()]: squared singular values in no order, a negative one
/// being a rounded zero. centered [count]: the squared norm of R. NaN for a matrix with an entry that is not
/// finite. Bit i of the answer: the values of matrix i did not converge.
unsigned small_spectra(const SmallSpectra& shape, const float* a, double* squares, double* centered);

}  // namespace rankscope
