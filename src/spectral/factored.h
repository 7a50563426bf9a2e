// Spectra of products of thin factors, without forming the product: O((m + n) r^2) for inner size r.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tensor_fwd.h"
#include "spectral/spectrum.h"

namespace rankscope {

/// Singular values of left [..., m, r] times right [..., r, n], one spectrum per matrix of the batch, through
/// the QR of both factors. sigma has min(m, r, n) entries: the others are zero by construction. One head's
/// factors are in double at a time, per thread.
std::vector<Spectrum> spectrum_of_product(const at::Tensor& left, const at::Tensor& right);

}  // namespace rankscope
