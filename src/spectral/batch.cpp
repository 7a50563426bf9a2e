#include "spectral/batch.h"

#include <ATen/ATen.h>

#include <limits>

#include "base/error.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "spectral/rows.h"

namespace rankscope {

double epsilon_of(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                        : static_cast<double>(std::numeric_limits<float>::epsilon());
}

std::vector<Spectrum> spectra_of_batch(const at::Tensor& x) {
  if (x.dim() < 2)
    throw Error("a spectrum needs a matrix or a batch of matrices, but got " + std::to_string(x.dim()) +
                " dimensions");
  if (x.scalar_type() != at::kFloat && x.scalar_type() != at::kDouble)
    throw Error(std::string("a spectrum needs float32 or float64 numbers, but got ") +
                toString(x.scalar_type()));
  const at::Tensor host = x.detach().to(at::kCPU).contiguous();
  const int64_t m = x.size(-2), n = x.size(-1), size = m * n;
  const double epsilon = epsilon_of(x);
  std::vector<Spectrum> spectra(static_cast<size_t>(size == 0 ? 0 : host.numel() / size));
  parallel_over(static_cast<int64_t>(spectra.size()), [&](int64_t i) {
    Spectrum& out = spectra[static_cast<size_t>(i)];
    if (host.scalar_type() == at::kDouble) {
      out = spectrum_of(host.data_ptr<double>() + i * size, m, n, epsilon);
    } else {
      thread_local std::vector<double> wide;
      wide.resize(static_cast<size_t>(size));
      kernels::widen(host.data_ptr<float>() + i * size, size, wide.data());
      out = spectrum_of(wide.data(), m, n, epsilon);
    }
  });
  return spectra;
}

}  // namespace rankscope
