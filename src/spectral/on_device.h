// Spectra as tensors, where the matrices are: nothing comes to the host, so nothing waits for the device.
//
// Everything goes through Gram matrices in double precision (the Gram route of spectral/rows.h, with its
// error). One reduction serves a matrix and the same without its mean row (spectral/token_batch.h).
#pragma once

#include "base/tensor_fwd.h"

namespace rankscope {

/// What spectra of matrices [count, m, n] are made of.
struct CenteredRows {  // whoever handles it includes ATen
  at::Tensor rows;     // [count, m, n] double, the mean row taken off; rows that do not count are zero
  at::Tensor mean;     // [count, n] double
  at::Tensor number;   // [count] double: rows that count
};

/// a [count, m, n], every row counting.
CenteredRows centered_rows(const at::Tensor& a);

struct SigmaPair {
  at::Tensor plain, centered;  // [count, min(m, n)] double, descending: of rows + 1 mean^T, and of rows alone
};
/// `centered_wanted`: how many of the largest of `rows` alone are needed; 0 for all.
SigmaPair singular_values(const CenteredRows& x, int64_t centered_wanted = 0);

/// Of `rows` alone, the largest `wanted` of them.
at::Tensor centered_singular_values(const at::Tensor& rows, int64_t wanted);

/// Of left [count, m, r] times right [count, r, n], r of them (those beyond min(m, n) are zero), by the
/// Cholesky factor of one Gram matrix: off by sqrt(eps (m + n)) of the product of both factors' norms.
at::Tensor product_singular_values(const at::Tensor& left, const at::Tensor& right);

/// The largest `wanted` eigenvalues of symmetric g [count, n, n] in double, descending. g is overwritten.
at::Tensor largest_eigenvalues(const at::Tensor& g, int64_t wanted);

/// sigma [count, k] with zeros behind the first `number` [count] of each.
at::Tensor first_of(const at::Tensor& sigma, const at::Tensor& number);

// Numbers of spectra [.., k], descending, zeros where a matrix has fewer; as in spectral/spectrum.h.
at::Tensor effective_rank_of(const at::Tensor& sigma);
at::Tensor stable_rank_of(const at::Tensor& sigma);       // sum sigma^2 / sigma_1^2
at::Tensor stable_rank_gram_of(const at::Tensor& sigma);  // sum sigma^4 / sigma_1^4
at::Tensor spectral_gap_of(const at::Tensor& sigma);
/// `tolerance`, relative to sigma_1, broadcasts over the leading dimensions.
at::Tensor numerical_rank_of(const at::Tensor& sigma, const at::Tensor& tolerance);

}  // namespace rankscope
