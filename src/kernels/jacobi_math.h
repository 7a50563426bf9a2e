// One-sided Jacobi, as the CUDA blocks of kernels/cuda/spectra.h run it: what to reduce, who meets whom, and
// by which angle a pair turns. Plain functions, so that a test can walk the same schedule on the host.
//
// Columns of a float32 matrix are turned in pairs until all are orthogonal; their norms are the singular
// values. Every rounding is relative to the column it falls into, and a turned pair stays as long as it was.
#pragma once

#include <math.h>

#include <cstdint>

#ifdef __CUDACC__
#define RANKSCOPE_JACOBI static __host__ __device__ __forceinline__
#else
#define RANKSCOPE_JACOBI [[maybe_unused]] static inline
#endif

namespace rankscope::jacobi {

/// Random matrices and attention take 5 to 15 sweeps, rows graded over many decades 20: one that needs more
/// than this has failed.
constexpr int kMostSweeps = 60;

/// Columns whose cosine is no larger count as orthogonal. A sum of `rows` products in float32, 32 lanes side
/// by side, is off by at most (rows / 32 + 5) 2^-24 of |p| |q|: a smaller tolerance would chase roundings.
RANKSCOPE_JACOBI float tolerance(int rows) { return 0x1p-24f * (static_cast<float>(rows) / 32.0f + 5.0f); }

/// A column below 2^-50 of the largest entry counts as zero: its square keeps all its digits in float32, and
/// what is left out is far below the rounding of the others.
constexpr float kNothing = 0x1p-100f;

/// Entry (i, .) of H A, H the reflection of 1 / sqrt(rows) to the first axis (the sign of its row does not
/// matter): row 0 is sqrt(rows) mean, and the others have the singular values of A less its mean row. `a`,
/// `first` and `mean`: of the same column, in rows i and 0 and on average.
RANKSCOPE_JACOBI float reflected(int i, int rows, double a, double first, double mean) {
  const double root = sqrt(static_cast<double>(rows));
  return static_cast<float>(i == 0 ? root * mean : a - mean - (first - mean) / (root + 1.0));
}

struct Pair {
  int p, q;
};

/// An even number of seats: in rounds 0 .. seats - 2 every two of them meet once, seats / 2 tables a round
/// (the one at the head keeps its seat, the others move on).
RANKSCOPE_JACOBI Pair meeting(int round, int table, int seats) {
  const int ring = seats - 1;
  if (table == 0) return {round, ring};
  const int p = (round + table) % ring, q = (round + ring - table) % ring;
  return p < q ? Pair{p, q} : Pair{q, p};
}

struct Turn {
  bool needed;
  float s, tau;  // sine, and sine / (1 + cosine)
};

/// The smaller angle that makes p and q orthogonal, from |p|^2, |q|^2 and p . q.
RANKSCOPE_JACOBI Turn turn_of(float pp, float qq, float pq, float most) {
  if (pp < kNothing || qq < kNothing || !(fabsf(pq) > most * (sqrtf(pp) * sqrtf(qq)))) return {false, 0, 0};
  const float zeta = 0.5f * (qq - pp) / pq, size = fabsf(zeta);
  const float far = size > 0x1p20f ? 2.0f * size : size + sqrtf(fmaf(size, size, 1.0f));
  const float t = copysignf(1.0f / far, zeta), c = 1.0f / sqrtf(fmaf(t, t, 1.0f)), s = c * t;
  return {true, s, s / (1.0f + c)};
}

/// As corrections to p and q: a small angle then rounds once, and the lengths stay.
RANKSCOPE_JACOBI void apply(const Turn& turn, float& p, float& q) {
  const float was = p;
  p = fmaf(-turn.s, fmaf(turn.tau, p, q), p);
  q = fmaf(turn.s, fmaf(-turn.tau, q, was), q);
}

}  // namespace rankscope::jacobi
