#include "spectral/norm.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <cmath>

#include "support/reference.h"

namespace rankscope {
namespace {

NormEstimate norm_of(const at::Tensor& x, bool centered = false) {
  const at::Tensor a = reference::wide(x);
  return spectral_norm(dense_map(a.data_ptr<double>(), a.size(0), a.size(1), centered));
}

TEST(SpectralNorm, MatchesTheSvdToOneInAMillion) {
  at::manual_seed(1);
  for (const auto& [m, n] :
       {std::pair{1, 1}, {1, 9}, {9, 1}, {2, 2}, {40, 40}, {128, 128}, {60, 200}, {200, 60}}) {
    const at::Tensor x = at::randn({m, n}, at::kDouble);
    EXPECT_NEAR(norm_of(x).value, reference::sigma(x)[0], 1e-6 * reference::sigma(x)[0]) << m << " x " << n;
  }
}

TEST(SpectralNorm, OfCenteredRandomAttentionMatchesTheSvd) {
  at::manual_seed(2);
  for (const double sharpness : {0.01, 1.0, 5.0, 50.0}) {
    const at::Tensor a = at::softmax(at::randn({96, 96}, at::kDouble) * sharpness, -1);
    EXPECT_NEAR(norm_of(a, true).value, reference::mixing(a), 1e-6 * reference::mixing(a)) << sharpness;
  }
}

TEST(SpectralNorm, TheResidualBoundsTheDistanceToASingularValue) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({50, 50}, at::kDouble);
  const NormEstimate e = norm_of(x);
  EXPECT_LE(std::fabs(e.value - reference::sigma(x)[0]), e.residual + 1e-13 * e.value);
  EXPECT_LE(e.residual, 1e-7 * e.value);
}

TEST(SpectralNorm, OfRankOneOfIdentityAndOfZeroIsExact) {
  at::manual_seed(4);
  const at::Tensor u = at::randn({30, 1}, at::kDouble), v = at::randn({1, 20}, at::kDouble);
  const double expected = reference::frobenius(u) * reference::frobenius(v);
  EXPECT_NEAR(norm_of(u.mm(v)).value, expected, 1e-12 * expected);
  EXPECT_NEAR(norm_of(at::eye(25)).value, 1, 1e-13);
  EXPECT_EQ(norm_of(at::zeros({5, 4})).value, 0);
}

TEST(SpectralNorm, OfUniformAttentionCenteredIsRounding) {
  EXPECT_LE(norm_of(at::full({64, 64}, 1.0 / 64, at::kDouble), true).value, 1e-15);
  EXPECT_LE(norm_of(at::full({50, 50}, 1.0 / 50, at::kDouble), true).value, 1e-14);
}

TEST(SpectralNorm, OfAClusteredSpectrumStillConverges) {
  at::manual_seed(5);
  const at::Tensor q = std::get<0>(at::linalg_qr(at::randn({80, 80}, at::kDouble)));
  const at::Tensor s = 1.0 - 1e-5 * at::arange(80, at::kDouble);
  EXPECT_NEAR(norm_of(q * s).value, 1.0, 1e-6);
}

TEST(SpectralNorm, OfSomethingNotFiniteIsNan) {
  at::Tensor x = at::ones({4, 4}, at::kDouble);
  x[0][0] = std::nan("");
  EXPECT_TRUE(std::isnan(norm_of(x).value));
}

TEST(SpectralNorm, IsTheSameEveryTime) {
  at::manual_seed(6);
  const at::Tensor x = at::randn({33, 21}, at::kDouble);
  EXPECT_EQ(norm_of(x).value, norm_of(x).value);
}

}  // namespace
}  // namespace rankscope
