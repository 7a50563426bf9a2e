#include "spectral/factored.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/parallel.h"
#include "spectral/batch.h"
#include "spectral/dense.h"
#include "spectral/rows.h"

namespace rankscope {
namespace {

/// The R of a thin QR of a^T, for a [r, m]: [min(r, m), r].
std::vector<double> triangle_of(const at::Tensor& a) {
  const at::Tensor wide =
      a.to(at::kDouble).contiguous().clone();  // overwritten, so never a view of the weights
  const int64_t r = wide.size(0), m = wide.size(1);
  std::vector<double> out(static_cast<size_t>(std::min(r, m) * r));
  dense::triangle(wide.data_ptr<double>(), r, m, out.data());
  return out;
}

}  // namespace

std::vector<Spectrum> spectrum_of_product(const at::Tensor& left, const at::Tensor& right) {
  if (left.dim() < 2 || left.dim() != right.dim() || left.size(-1) != right.size(-2))
    throw Error(
        fmt::format("a product needs factors [.., m, r] and [.., r, n], but got inner sizes {} and {}",
                    left.dim() < 2 ? 0 : left.size(-1), right.dim() < 2 ? 0 : right.size(-2)));
  const int64_t m = left.size(-2), r = left.size(-1), n = right.size(-1);
  const at::Tensor a = left.detach().to(at::kCPU).reshape({-1, m, r});
  const at::Tensor b = right.detach().to(at::kCPU).reshape({-1, r, n});
  if (a.size(0) != b.size(0))
    throw Error(fmt::format("a product needs as many left factors as right ones, but got {} and {}",
                            a.size(0), b.size(0)));
  std::vector<Spectrum> spectra(static_cast<size_t>(a.size(0)));
  parallel_over(a.size(0), [&](int64_t i) {
    const std::vector<double> l = triangle_of(a[i].t()), u = triangle_of(b[i]);
    const int64_t rows = std::min(m, r), cols = std::min(n, r);
    std::vector<double> core(static_cast<size_t>(rows * cols));
    dense::multiply_nt(l.data(), u.data(), rows, cols, r, core.data());
    Spectrum& s = spectra[static_cast<size_t>(i)];
    s = spectrum_exact(core.data(), rows, cols, epsilon_of(left));
    s.rows = m, s.cols = n;
  });
  return spectra;
}

}  // namespace rankscope
