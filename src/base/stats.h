// Means over samples with their standard errors.
#pragma once

#include <span>

namespace rankscope {

struct Estimate {
  double value;
  double stderr_;  // NaN for fewer than two samples
};

/// Samples that are not finite are left out by the caller; an empty span gives NaN.
Estimate arithmetic_mean(std::span<const double> x);

/// exp(mean(log x)); its standard error by the delta method. Zeros among numbers that are not count as the
/// least of these, as 2^-20 at most: one sample of zero says nothing of the others. Of zeros alone the mean
/// is zero.
Estimate geometric_mean(std::span<const double> x);

/// Median; the mean of the middle two for an even count.
double median(std::span<const double> x);

/// The q-quantile, 0 <= q <= 1, with straight lines between order statistics.
double quantile(std::span<const double> x, double q);

}  // namespace rankscope
