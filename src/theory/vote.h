// Depth against rank: two layers of rank-1 heads find the nearest of two points by majority.
//
// Layer 1 has H hard heads with q = k uniform; head h picks point i by <q_h, y><q_h, x_i> and writes its
// position code, so the scratch space holds the votes. Layer 2 is one rank-1 head that reads the difference
// of the votes. At a tie it writes the mean of both points. This construction is our reconstruction of the
// published theorem.
#pragma once

#include <cstdint>

#include "base/stats.h"

namespace rankscope {

enum class Tie {
  mean,  // the construction: equal scores, so the mean of both points, at error 1/2
  coin,  // one of the two at random: the same error as with one head less
};

/// Error of the construction over the angle: 2 P(minority is right), and what a tie costs when H is even.
/// Exact to 2^20 heads; above, by the normal law and without ties, with a relative error below 1e-3.
double vote_error(int64_t d, double heads, Tie tie = Tie::mean);

/// Its limit for d << H.
double vote_asymptote(int64_t d, double heads);

/// P(right) - 1/N of one q = k rank-1 hard head among the N <= d points e_1 ... e_N.
Estimate vote_advantage(int64_t d, int64_t n, int64_t samples, uint64_t seed);

}  // namespace rankscope
