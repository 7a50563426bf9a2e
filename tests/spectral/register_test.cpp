// Spectra as another program sees them: found by name in torch's dispatcher.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <limits>
#include <vector>

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

// Singular values are off by a few roundings of the largest for each row or column, and so is what is put
// together of them and the singular vectors.
double tolerance(const at::Tensor& a, double largest) {
  return 4 * static_cast<double>(std::max(a.size(-2), a.size(-1))) * epsilon_of(a) * largest;
}

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
  const at::Tensor a = at::diag(at::tensor({3.0, 5.0}, at::kDouble));
  const Found one = spectra(a);
  EXPECT_LT(distance(one.sigma, at::tensor({5.0, 3.0}, at::kDouble)), tolerance(a, 5));
  EXPECT_EQ(one.norm.dim(), 0);
  EXPECT_EQ(spectra(at::empty({0, 4, 3})).sigma.sizes(), at::IntArrayRef({0, 3}));
  EXPECT_EQ(spectra(at::empty({0, 4, 3})).norm.sizes(), at::IntArrayRef({0}));
}

TEST(SpectraByName, OfAMatrixThatIsNotFiniteAreNotANumberBesideItsNeighbours) {
  at::manual_seed(3);
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 5, 4}, {3, 300, 200}}) {
      at::Tensor a = at::randn(shape, type);
      const Found before = spectra(a);
      a[1][2][3] = std::numeric_limits<double>::infinity();
      const Found found = spectra(a);
      EXPECT_TRUE(at::isnan(found.sigma[1]).all().item<bool>());
      EXPECT_TRUE(at::isnan(found.norm[1]).item<bool>());
      for (const int64_t i : {0, 2}) {
        EXPECT_TRUE(at::equal(found.sigma[i], before.sigma[i]));
        EXPECT_TRUE(at::equal(found.norm[i], before.norm[i]));
      }
    }
}

TEST(SpectraByName, HaveTheSameValuesAndTheKnownGradientWhereOneIsWanted) {
  at::manual_seed(2);
  const at::Tensor a = at::randn({3, 5, 4}, at::kDouble), leaf = a.clone().requires_grad_(true);
  const Found plain = spectra(a), tracked = spectra(leaf);
  const double size = plain.sigma.max().item<double>();
  EXPECT_LT(distance(tracked.sigma, plain.sigma), tolerance(a, size));
  EXPECT_LT(distance(tracked.norm, plain.norm), tolerance(a, size));
  // The sum of squares of all singular values is that of all entries.
  const at::Tensor slope = torch::autograd::grad({tracked.sigma.square().sum()}, {leaf})[0];
  EXPECT_LT(distance(slope, 2 * a), tolerance(a, 2 * size));
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
