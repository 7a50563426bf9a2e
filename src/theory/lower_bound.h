// The computable lower bound on the error of low-rank attention, with every constant explicit.
//
// Two orthonormal points whose difference is uniformly distributed, the nearest of them to y as target, mean
// squared norm as error. For fixed points, H heads that see y only through r numbers each give a function of
// y in a sum of H spaces {g(Q_h^T y)}; in degree l such a space has dimension C(l+r-1, l) of the N(d, l)
// there are. The direction w being uniform, at most H C(l+r-1, l) / N(d, l) of the energy of degree l is
// caught:
//
//   error >= LB(d, r, H) = 1/2 sum_{l odd} eta_l^2 max(0, 1 - H C(l+r-1, l) / N(d, l)),
//
// whatever the heads do with their r numbers, whatever their values are, without a bound on weights.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope {

/// LB as a function of H for one width and one rank. Holds the series once; each value is then a search.
class LowerBound {
 public:
  /// d >= 2, 1 <= rank; a rank of d or more makes the bound zero.
  LowerBound(int64_t d, int64_t rank);

  /// H > 0 need not be whole: a budget of W d numbers buys W d / r heads.
  double at(double heads) const;
  double at_log(double log_heads) const;

  /// log10 of the smallest H whose bound is at most `error`: fewer heads cannot reach that error. Zero when
  /// the bound of a single head allows it.
  double log10_heads_for(double error) const;

 private:
  double beyond(double log_heads) const;

  int64_t d_, rank_;
  std::vector<double> log_share_;  // log C(l+r-1, l) / N(d, l), falling; entry k is degree 2k + 1
  std::vector<double> tail_;       // sum of eta_j^2 over j >= l
  std::vector<double> shared_;     // sum of eta_j^2 share_j / share_l over j >= l
  double rest_ = 0;                // sum of eta_j^2 above the last degree held
  double log_last_share_ = 0, limit_ = 0, decay_ = 1;  // above it the share falls to its limit as l^-decay
};

double lower_bound(int64_t d, int64_t rank, double heads);

}  // namespace rankscope
