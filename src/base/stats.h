// Means over samples with their standard errors.
#pragma once

#include <span>
#include <vector>

namespace rankscope {

struct Estimate {
  double value;
  double stderr_;  // NaN for fewer than two samples
};

/// Samples that are not finite are left out by the caller; an empty span gives NaN.
Estimate arithmetic_mean(std::span<const double> x);

/// Logarithms of numbers of which some are zero: a zero counts as 2^-20 of the others' geometric mean, or as
/// the least of them where that is less, so that one zero does not make the mean zero. Zeros alone stay minus
/// infinity.
std::vector<double> finite_logs(std::vector<double> logs);

/// exp(mean(log x)) over finite_logs; its standard error by the delta method. Of zeros alone the mean is
/// zero.
Estimate geometric_mean(std::span<const double> x);

/// Median; the mean of the middle two for an even count.
double median(std::span<const double> x);

/// The q-quantile, 0 <= q <= 1, with straight lines between order statistics.
double quantile(std::span<const double> x, double q);

}  // namespace rankscope
