// Spectra of a batch as a torch operator, found by name as those of ops/ are.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>

#include "ops/checks.h"
#include "spectral/batch.h"

namespace rankscope {
namespace {

using at::Tensor;
using Spectra = std::tuple<Tensor, Tensor>;

// Singular values have a gradient by way of the singular vectors, which the batched routes do not compute.
Spectra differentiable(const Tensor& a) {
  return {at::linalg_svdvals(a), at::linalg_svdvals(a - a.mean(-2, true)).select(-1, 0)};
}

Spectra call_spectra(const Tensor& a) {
  require_memory(a, "a");
  require(a.scalar_type() == at::kFloat || a.scalar_type() == at::kDouble, "a must be float32 or float64");
  require(a.dim() >= 2 && a.size(-2) >= 1 && a.size(-1) >= 1,
          "a must be [.., rows, columns] with at least one of each");
  if (at::GradMode::is_enabled() && a.requires_grad()) return differentiable(a);

  std::vector<int64_t> batch = a.sizes().vec();
  batch.resize(batch.size() - 2);
  const int64_t each = std::min(a.size(-2), a.size(-1));
  const std::vector<CenteredSpectrum> found = centered_spectra_of_batch(a);
  const auto count = static_cast<int64_t>(found.size());
  const Tensor sigma = at::empty({count, each}, at::kDouble), norms = at::empty({count}, at::kDouble);
  for (int64_t i = 0; i < count; ++i) {
    const CenteredSpectrum& one = found[static_cast<size_t>(i)];
    std::copy_n(one.spectrum.sigma.begin(), each, sigma.data_ptr<double>() + i * each);
    norms.data_ptr<double>()[i] = one.norm;
  }
  std::vector<int64_t> shape = batch;
  shape.push_back(each);
  return {sigma.view(shape).to(a.device(), a.scalar_type()),
          norms.view(batch).to(a.device(), a.scalar_type())};
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def("spectra(Tensor a) -> (Tensor sigma, Tensor centered_norm)", rankscope::call_spectra);
}
