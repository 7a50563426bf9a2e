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

/// Logarithms of which some are those of zero: such a one counts as that of 2^-20 of the others' geometric
/// mean, or as the least of them where that is less. Zeros alone stay minus infinity. For numbers that no
/// double holds, which may lie any distance apart.
std::vector<double> finite_logs(std::vector<double> logs);

/// Logarithms for a geometric mean: what is below 2^-20 of the median (of those that are not zero, where half
/// of all are), be it zero or what rounding leaves of it, counts as that. So one sample of equal tokens does
/// not make the mean zero, and its rounding does not decide it. Zeros alone stay minus infinity.
std::vector<double> logs_of(std::span<const double> x);

/// exp(mean(logs_of(x))); its standard error by the delta method. Of zeros alone the mean is zero.
Estimate geometric_mean(std::span<const double> x);

/// Median; the mean of the middle two for an even count.
double median(std::span<const double> x);

/// Slope of the line through these points that least squares choose; NaN where all x are one.
double least_squares_slope(std::span<const double> x, std::span<const double> y);

/// The q-quantile, 0 <= q <= 1, with straight lines between order statistics.
double quantile(std::span<const double> x, double q);

}  // namespace rankscope
