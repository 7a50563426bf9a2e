#include "spectral/arnoldi.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace rankscope {
namespace {

double radius_of(const at::Tensor& a) { return at::linalg_eigvals(a).abs().max().item<double>(); }

LinearMap map_of(const at::Tensor& a) { return dense_map(a.data_ptr<double>(), a.size(0), a.size(1), false); }

TEST(SpectralRadius, IsTheDenseOneOfRandomMatrices) {
  at::manual_seed(1);
  for (const int64_t n : {1, 2, 3, 17, 64, 128}) {
    const at::Tensor a = at::randn({n, n}, at::kDouble);
    // Eigenvalues of a random matrix are well conditioned: the residual bounds the error up to a small
    // factor.
    EXPECT_NEAR(spectral_radius(map_of(a)).value, radius_of(a), 1e-4 * radius_of(a)) << n;
  }
}

TEST(SpectralRadius, KnowsRotationsAndNilpotentMatrices) {
  const at::Tensor turn = at::tensor({0.0, -2.0, 2.0, 0.0}, at::kDouble).view({2, 2});
  EXPECT_NEAR(spectral_radius(map_of(turn)).value, 2.0, 1e-12);
  EXPECT_EQ(spectral_radius(map_of(at::zeros({5, 5}, at::kDouble))).value, 0.0);
}

TEST(SpectralRadius, OfACenteredStochasticMatrixIsItsSecondEigenvalue) {
  at::manual_seed(2);
  const at::Tensor a = at::softmax(at::randn({40, 40}, at::kDouble) * 2, -1).contiguous();
  const at::Tensor moduli = std::get<0>(at::linalg_eigvals(a).abs().sort(0, true));
  EXPECT_NEAR(moduli[0].item<double>(), 1.0, 1e-12);
  const RadiusEstimate found = spectral_radius(dense_map(a.data_ptr<double>(), 40, 40, true));
  EXPECT_NEAR(found.value, moduli[1].item<double>(), 1e-5);
}

}  // namespace
}  // namespace rankscope
