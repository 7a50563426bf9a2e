// Eigenvalues of many symmetric matrices of doubles on CUDA, in two steps, as kernels/cpu/symmetric.h takes
// them: to tridiagonal form, and from there by bisection, one eigenvalue a thread.
//
// A step of the reduction is one pass over what is left of the upper triangle: it subtracts what the last
// reflection asks for and multiplies by the next one at once, so every entry is read and written once a step.
// Up to kLongestAlone rows a matrix fits into the shared memory of one block. Longer ones stay where they
// are; where there are few of them, the rows of one are shared by a cluster of blocks, which meet once a
// step.
//
// Error: an eigenvalue is off by a few roundings of the largest, as in LAPACK.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

constexpr int64_t kLongestAlone = 216;
/// The largest size at all: the vectors of a step fit into shared memory.
constexpr int64_t kLongestTridiagonal = 3400;

/// g [count, size, size]: the upper triangle (row-major) is read and overwritten. d [count, size]: the
/// diagonal; e [count, size]: squares of what lies beside it, e[i] between i and i + 1, the last one 0.
void tridiagonalise(int64_t count, int64_t size, double* g, double* d, double* e, void* stream);

/// The part of each matrix from row `first` on, and how many of its largest eigenvalues are wanted.
struct Bisection {
  int64_t count = 0, size = 1, first = 0, wanted = 1;
};

/// d and e as above; offset [count], where given, is added to the first entry of each part. values [count,
/// wanted]: descending, to a rounding of the largest; NaN for a matrix with an entry that is not finite.
void tridiagonal_eigenvalues(const Bisection& what, const double* d, const double* e, const double* offset,
                             double* values, void* stream);

}  // namespace rankscope::cuda
