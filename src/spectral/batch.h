// Spectra of many matrices at once.
#pragma once

#include <vector>

#include "base/tensor_fwd.h"
#include "spectral/spectrum.h"

namespace rankscope {

/// x [..., m, n], float32 or float64, any device and strides; the leading dimensions are flattened.
///
/// Small float32 matrices go through kernels/cpu/small_spectra.h, one per SIMD lane (route "lanes"), where
/// the error stated there is at most half the tolerance of their numerical rank; those of a GPU through their
/// Gram matrices there (spectral/on_device.h, route "gram"). The others come to the host and take
/// spectrum_of, one thread each. A matrix has the same spectrum alone and in company.
std::vector<Spectrum> spectra_of_batch(const at::Tensor& x);

struct CenteredSpectrum {
  Spectrum spectrum;
  double norm = 0;  // largest singular value of (I - J) A, J = 1 1^T / m, to error / sigma_1 of itself
};
/// The same with the norm of each matrix without its mean row.
std::vector<CenteredSpectrum> centered_spectra_of_batch(const at::Tensor& x);

/// Relative spacing of the numbers of x's dtype.
double epsilon_of(const at::Tensor& x);

}  // namespace rankscope
