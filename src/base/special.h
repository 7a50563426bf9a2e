// Special functions, and the distributions that are made of them.
#pragma once

namespace rankscope {

/// log Gamma for positive x. std::lgamma writes a global sign, which threads would race for.
double log_gamma(double x);

/// Regularised incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x);

/// P(T > t) for Student's t with `freedom` degrees of freedom.
double student_tail(double t, double freedom);

/// The t above 0 with P(T > t) = level, for a level below a half.
double student_quantile(double level, double freedom);

}  // namespace rankscope
