// The cubic bound of Dong, Cordonnier and Loukas (2021, second version), evaluated instead of quoted:
//   r_{l+1} <= c r_l^3,   c = 8 (1 - 1/n) gamma beta H scale,   r in the composite norm sqrt(||.||_1
//   ||.||_inf),
// so r_L <= c^{-1/2} (sqrt(c) r_0)^{3^L}, which shrinks only where sqrt(c) r_0 < 1. Their constant is
// 4 gamma beta H scale: it bounds the residual about a token that the proof chooses, and 2 (1 - 1/n) times
// that is one about the mean of the n tokens, which is what is measured. The composite has no triangle
// inequality, so heads are taken together by separate maxima: beta is max_h ||W_QK||_1 sqrt(max_h ||W_h||_1
// max_h ||W_h||_inf), and gamma, which depends on the input (the smallest one for which the proof's step
// holds there), is sqrt(max_h sum_i D_i / 2 ||E||_1 max_h max_i D_i / 2 ||E||_1), D_i the range of row i of
// the scores E.
#pragma once

namespace rankscope {

/// The proof needs max_{j,j'} |E_ij - E_ij'| below this in every row: the root of e^x = 1 + 2 x.
constexpr double kSpreadLimit = 1.2564312086261697;
/// The same bound without gamma needs max |E| below this: e^m (e^m - 1) / m <= 2.
constexpr double kScoreLimit = 0.45;

double cubic_constant(double gamma, double beta, double heads, double scale, double tokens);

/// log of c^{(3^L - 1) / 2} r_0^{3^L}, natural; +inf where it overflows.
double log_collapse_bound(double c, double log_r0, int layers);

/// sqrt(c) r_0: the bound says something only below 1.
double collapse_margin(double c, double log_r0);

}  // namespace rankscope
