// Spectra as another program sees them: found by name in torch's dispatcher.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "spectral/batch.h"

namespace rankscope {
namespace {

struct Found {
  at::Tensor sigma, norm;
};

Found spectra(const at::Tensor& a) {
  std::vector<c10::IValue> stack{a};
  c10::Dispatcher::singleton().findSchemaOrThrow("rankscope::spectra", "").callBoxed(&stack);
  return {stack.at(0).toTensor(), stack.at(1).toTensor()};
}

double distance(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(SpectraByName, AreThoseOfTheBatch) {
  at::manual_seed(1);
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor a = at::randn({2, 3, 12, 20}, type);
    const Found found = spectra(a);
    ASSERT_EQ(found.sigma.sizes(), at::IntArrayRef({2, 3, 12}));
    ASSERT_EQ(found.norm.sizes(), at::IntArrayRef({2, 3}));
    EXPECT_EQ(found.sigma.scalar_type(), type);
    const std::vector<CenteredSpectrum> direct = centered_spectra_of_batch(a);
    for (int64_t i = 0; i < 6; ++i) {
      const CenteredSpectrum& one = direct[static_cast<size_t>(i)];
      const at::Tensor row = found.sigma.reshape({6, 12})[i];
      for (int64_t k = 0; k < 12; ++k)
        EXPECT_NEAR(row[k].item<double>(), one.spectrum.sigma[static_cast<size_t>(k)],
                    epsilon_of(a) * one.spectrum.largest());
      EXPECT_NEAR(found.norm.reshape({6})[i].item<double>(), one.norm, epsilon_of(a) * one.norm);
    }
  }
}

TEST(SpectraByName, OfOneMatrixAndOfNone) {
  const Found one = spectra(at::diag(at::tensor({3.0, 5.0})));
  EXPECT_LT(distance(one.sigma, at::tensor({5.0, 3.0})), 1e-14);
  EXPECT_EQ(one.norm.dim(), 0);
  EXPECT_EQ(spectra(at::empty({0, 4, 3})).sigma.sizes(), at::IntArrayRef({0, 3}));
  EXPECT_EQ(spectra(at::empty({0, 4, 3})).norm.sizes(), at::IntArrayRef({0}));
}

TEST(SpectraByName, HaveTheSameValuesAndTheKnownGradientWhereOneIsWanted) {
  at::manual_seed(2);
  const at::Tensor a = at::randn({3, 5, 4}, at::kDouble), leaf = a.clone().requires_grad_(true);
  const Found plain = spectra(a), tracked = spectra(leaf);
  const double size = plain.sigma.max().item<double>();
  EXPECT_LT(distance(tracked.sigma, plain.sigma), 1e-13 * size);
  EXPECT_LT(distance(tracked.norm, plain.norm), 1e-13 * size);
  // The sum of squares of all singular values is that of all entries.
  const at::Tensor slope = torch::autograd::grad({tracked.sigma.square().sum()}, {leaf})[0];
  EXPECT_LT(distance(slope, 2 * a), 1e-13 * size);
}

TEST(SpectraByName, RefuseWhatIsNoBatchOfMatrices) {
  EXPECT_ANY_THROW(spectra(at::ones({4})));
  EXPECT_ANY_THROW(spectra(at::ones({3, 0, 4})));
  EXPECT_ANY_THROW(spectra(at::ones({3, 4}, at::kLong)));
  EXPECT_ANY_THROW(spectra(at::ones({3, 4}).to_sparse()));
  EXPECT_ANY_THROW(spectra(at::empty({3, 4}, at::TensorOptions().device(at::kMeta))));
}

}  // namespace
}  // namespace rankscope
