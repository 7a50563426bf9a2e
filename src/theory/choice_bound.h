// The lower bound for the nearest of N points, with its error bar (docs/BOUND.md).
//
//   error >= sum_l W_l max(0, 1 - H C(l+r-1, l) / N(d, l))
//
// for one layer of H heads that see the query through r numbers each. Degrees above the last one held count
// with the share of the first of them, which is the largest: what is returned is never above the bound.
#pragma once

#include <cstdint>
#include <vector>

#include "theory/choice_energies.h"

namespace rankscope {

class ChoiceBound {
 public:
  /// 1 <= rank; a rank of d or more makes the bound zero. The energies are those of the points' law: that of
  /// orthonormal points (choice_energies) or of independent ones (independent_energies).
  ChoiceBound(int64_t d, int64_t rank, ChoiceEnergies energies);

  /// The error bar is taken off. H > 0 need not be whole.
  double at(double heads) const;
  double at_log(double log_heads) const;
  /// What was taken off: the energies' errors, weighted as they are in the bound, and the rounding of their
  /// shares.
  double error_bar(double heads) const;

  /// What is left when degrees 0 and 1, the part that is linear in the query, are learned: 1 - W_0 - W_1.
  double plateau() const { return 1 - energies_.energy[0] - energies_.energy[1]; }
  const ChoiceEnergies& energies() const { return energies_; }

  /// log10 of the smallest H whose bound is at most `error`; zero when one head is allowed it.
  double log10_heads_for(double error) const;

 private:
  struct Sum {
    double bound, error;
  };
  Sum sum(double log_heads) const;

  int64_t d_, rank_;
  ChoiceEnergies energies_;
  std::vector<double> log_share_;  // of degrees 0, 1, ... and of the first that is not held
};

}  // namespace rankscope
