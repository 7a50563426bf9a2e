// Spectra of many matrices at once, one thread each.
#pragma once

#include <vector>

#include "base/tensor_fwd.h"
#include "spectral/spectrum.h"

namespace rankscope {

/// x [..., m, n], float32 or float64, any device and strides; the leading dimensions are flattened. Matrices
/// on a GPU come to the host first, where many small ones spread over the cores.
std::vector<Spectrum> spectra_of_batch(const at::Tensor& x);

/// Relative spacing of the numbers of x's dtype.
double epsilon_of(const at::Tensor& x);

}  // namespace rankscope
