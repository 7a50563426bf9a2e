// What rounding may do to a float32 result, so that a tolerance says where it comes from.
//
// Rounding to float32 moves a number by at most 2^-24 of it. A sum of n terms rounds n times; the roundings
// are as often up as down, so they add like a random walk: 2^-24 sqrt(n) of the size of the terms.
//
// A forward pass is a chain of such sums. Norms keep the gain from block to block near one, so the errors of
// the blocks add, and the ends (embedding, final norm, head) count as one block more. A block has several
// sums one after another; that they are made in SIMD lanes, of n/8 terms or fewer each, pays for those. The 4
// in front: the largest of some thousand errors lies four standard deviations out. Measured against float64
// and other programs, results lie 2 to 12 times below it.
#pragma once

#include <cmath>
#include <cstdint>

namespace rankscope::test {

inline constexpr double kFloatRounding = 0x1p-24;

/// Of a float32 sum of n terms, relative to the size of the terms.
inline double sum_error(int64_t n) { return kFloatRounding * std::sqrt(static_cast<double>(n)); }

/// Of a forward pass through so many blocks whose sums have n terms, relative to the largest value.
inline double forward_error(int64_t blocks, int64_t n) {
  return 4 * static_cast<double>(blocks + 1) * sum_error(n);
}

/// Of its gradients: the backward pass is as long again.
inline double gradient_error(int64_t blocks, int64_t n) { return forward_error(2 * blocks, n); }

}  // namespace rankscope::test
