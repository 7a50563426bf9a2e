// The sign kernel as an average of rank-1 hard heads, sgn<x,y> = E u(<q,k>) sgn<q,y> sgn<k,x> over uniform q
// and k. It needs u_l = 1 / lambda_l in every degree, u(t) = sum_{l odd} N / lambda_l P_l(t): a series that
// diverges, so no integrable density of heads represents the target. Cut at degree L it leaves the error
// 1/2 sum_{l>L} eta_l^2.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope {

enum class Normalisation {
  correct,    // N / lambda_l on P_l
  published,  // N / lambda_l on the L2-normalised sqrt(N) P_l: too large by sqrt(N) in every degree, as in
              // the figure
};

class HeadDensity {
 public:
  HeadDensity(int64_t d, int64_t last_degree, Normalisation normalisation = Normalisation::correct);
  double at(double cosine) const;
  /// Largest |u|: at cosine 1, where every polynomial is largest and the last degree outweighs the rest.
  double peak() const { return at(1) < 0 ? -at(1) : at(1); }
  /// What a layer with this density of heads leaves.
  double error() const;

 private:
  int64_t d_, last_;
  std::vector<double> coefficients_;
};

}  // namespace rankscope
