// The singular values of one matrix as a plain value, and the numbers read from them. What made them is kept
// beside them: two spectra of the same matrix by different routes differ by at most their errors.
//
// A zero matrix has effective, stable and numerical rank 0. A matrix with an entry that is not finite has a
// spectrum of NaN, and every number read from it is NaN.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace rankscope {

struct Spectrum {
  std::vector<double> sigma = {};  // descending, min(rows, cols) of them
  int64_t rows = 0, cols = 0;
  double epsilon = 0;  // relative spacing of the data's dtype: what numerical_rank's tolerance is made from
  double error = 0;    // absolute, on each singular value
  // "exact": of the matrix; "gram": of its Gram matrix; "lanes": in float32, many at once; "rows": of sampled
  // rows
  std::string_view route = "exact";

  double largest() const { return sigma.empty() ? 0.0 : sigma.front(); }
};

/// exp(entropy of sigma / sum sigma): between 1 and the rank.
double effective_rank(const Spectrum& s);
/// The same divided by min(rows, cols).
double effective_rank_rel(const Spectrum& s);
/// sum sigma^2 / sigma_1^2.
double stable_rank(const Spectrum& s);
/// The stable rank of X X^T: sum sigma^4 / sigma_1^4.
double stable_rank_gram(const Spectrum& s);
/// sigma_1 - sigma_2; sigma_2 of a single row or column is 0.
double spectral_gap(const Spectrum& s);

struct NumericalRank {
  double rank;  // a count; NaN where the spectrum is
  double tolerance;
};
/// Count of sigma > tolerance, tolerance = max(rows, cols) * epsilon * sigma_1.
NumericalRank numerical_rank(const Spectrum& s);

/// sqrt(sum sigma^2).
double frobenius(const Spectrum& s);

}  // namespace rankscope
