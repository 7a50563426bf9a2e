#include "spectral/factored.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "base/error.h"
#include "support/reference.h"

namespace rankscope {
namespace {

TEST(Factored, MatchesTheSpectrumOfTheFormedProductOnOddShapes) {
  at::manual_seed(1);
  struct Shape {
    int64_t m, r, n;
  };
  for (const Shape& s :
       {Shape{20, 4, 20}, {20, 4, 7}, {5, 9, 6}, {3, 8, 20}, {1, 1, 1}, {6, 6, 6}, {30, 1, 2}}) {
    const at::Tensor a = at::randn({3, s.m, s.r}, at::kDouble), b = at::randn({3, s.r, s.n}, at::kDouble);
    const std::vector<Spectrum> spectra = spectrum_of_product(a, b);
    for (int64_t h = 0; h < 3; ++h) {
      const std::vector<double> exact = reference::sigma(a[h].mm(b[h]));
      const Spectrum& got = spectra[static_cast<size_t>(h)];
      ASSERT_EQ(got.sigma.size(), static_cast<size_t>(std::min({s.m, s.r, s.n})));
      for (size_t k = 0; k < got.sigma.size(); ++k) EXPECT_NEAR(got.sigma[k], exact[k], 1e-13 * exact[0]);
      EXPECT_EQ(got.rows, s.m);
      EXPECT_EQ(got.cols, s.n);
    }
  }
}

TEST(Factored, SmallSingularValuesKeepTheirDigits) {
  // A Gram matrix of the factors would lose everything below 1e-8.
  const at::Tensor a = at::diag(at::tensor({1.0, 1e-6, 1e-12}, at::kDouble)), b = at::eye(3, at::kDouble);
  EXPECT_NEAR(spectrum_of_product(a, b)[0].sigma[2], 1e-12, 1e-15);
}

TEST(Factored, TheFactorsAreLeftAsTheyWere) {
  at::manual_seed(2);
  const at::Tensor a = at::randn({2, 5, 3}, at::kDouble), b = at::randn({2, 3, 5}, at::kDouble);
  const at::Tensor a0 = a.clone(), b0 = b.clone();
  spectrum_of_product(a, b);
  spectrum_of_product(b.transpose(1, 2), a.transpose(1, 2));
  EXPECT_TRUE(at::equal(a, a0));
  EXPECT_TRUE(at::equal(b, b0));
}

TEST(Factored, ZeroFactorsHaveRankZero) {
  const Spectrum s = spectrum_of_product(at::zeros({1, 4, 2}), at::ones({1, 2, 4}))[0];
  EXPECT_EQ(effective_rank(s), 0);
  EXPECT_EQ(stable_rank(s), 0);
}

TEST(Factored, InnerSizesThatDifferAreRefusedInWords) {
  try {
    spectrum_of_product(at::ones({4, 3}), at::ones({2, 4}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "a product needs factors [.., m, r] and [.., r, n], but got inner sizes 3 and 2");
  }
  EXPECT_THROW(spectrum_of_product(at::ones({2, 4, 3}), at::ones({3, 3, 4})), Error);
}

}  // namespace
}  // namespace rankscope
