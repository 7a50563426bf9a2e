#include "spectral/batch.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "base/error.h"
#include "kernels/cuda/train.h"
#include "ops/fused.h"
#include "support/reference.h"

namespace rankscope {
namespace {

TEST(Batch, EveryMatrixHasTheSpectrumItHasAlone) {
  at::manual_seed(1);
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor x = at::randn({3, 4, 12, 20}, type);
    const std::vector<Spectrum> all = spectra_of_batch(x);
    ASSERT_EQ(all.size(), 12u);
    for (int64_t i = 0; i < 12; ++i) {
      const at::Tensor one = x.reshape({12, 12, 20})[i];
      const Spectrum alone = spectra_of_batch(one)[0], &packed = all[static_cast<size_t>(i)];
      const std::vector<double> exact = reference::sigma(one);
      for (size_t k = 0; k < exact.size(); ++k) {
        EXPECT_NEAR(alone.sigma[k], packed.sigma[k],
                    1e-13 * exact[0]);  // BLAS may split a single one over threads
        EXPECT_NEAR(packed.sigma[k], exact[k], packed.error + 1e-15 * exact[0]);
      }
    }
  }
}

TEST(Batch, StridesDoNotMatter) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({5, 6, 9});
  const std::vector<Spectrum> turned = spectra_of_batch(x.transpose(1, 2)), plain = spectra_of_batch(x);
  for (size_t i = 0; i < 5; ++i)
    for (size_t k = 0; k < 6; ++k) EXPECT_NEAR(turned[i].sigma[k], plain[i].sigma[k], plain[i].error);
}

TEST(Batch, SmallFloatMatricesTakeTheLanesAndKeepTheirStatedError) {
  at::manual_seed(4);
  const at::Tensor x = at::softmax(at::randn({21, 50, 50}) * 2, -1);
  const std::vector<CenteredSpectrum> found = centered_spectra_of_batch(x);
  const std::vector<Spectrum> plain = spectra_of_batch(x);
  ASSERT_EQ(found.size(), 21u);
  for (size_t i = 0; i < found.size(); ++i) {
    const at::Tensor one = x[static_cast<int64_t>(i)];
    const Spectrum& s = found[i].spectrum;
    const std::vector<double> exact = reference::sigma(one);
    EXPECT_EQ(s.route, fused_kernels() ? "lanes" : "gram");
    EXPECT_EQ(s.sigma, plain[i].sigma);
    for (size_t k = 0; k < exact.size(); ++k) EXPECT_NEAR(s.sigma[k], exact[k], s.error);
    EXPECT_LE(2 * s.error, numerical_rank(s).tolerance);
    const double norm = reference::mixing(one);
    EXPECT_NEAR(found[i].norm, norm, std::max(s.error / exact[0], 1e-6) * norm);
  }
}

TEST(Batch, WhatTheLanesAreTooCoarseForGoesInDouble) {
  EXPECT_EQ(spectra_of_batch(at::eye(12))[0].route, "gram");   // their error would near the rank's tolerance
  EXPECT_EQ(spectra_of_batch(at::eye(400))[0].route, "gram");  // out of the cache
  EXPECT_EQ(spectra_of_batch(at::eye(50, at::kDouble))[0].route, "exact");
}

TEST(Batch, MatricesOfAGpuStayThereAndKeepTheirStatedError) {
  if (!at::hasCUDA() || !cuda::available()) GTEST_SKIP() << "no CUDA in this build, or no GPU";
  at::manual_seed(5);
  const at::Tensor x = at::softmax(at::randn({3, 7, 50, 128}) * 2, -1), there = x.to(at::kCUDA);
  for (const at::Tensor& given : {there, there.transpose(2, 3)}) {  // wide and tall, one with other strides
    const std::vector<CenteredSpectrum> found = centered_spectra_of_batch(given);
    const std::vector<Spectrum> plain = spectra_of_batch(given);
    ASSERT_EQ(found.size(), 21u);
    for (size_t i = 0; i < found.size(); ++i) {
      const at::Tensor one = given.flatten(0, 1)[static_cast<int64_t>(i)].cpu();
      const Spectrum& s = found[i].spectrum;
      const std::vector<double> exact = reference::sigma(one);
      EXPECT_EQ(s.route, "gram");
      EXPECT_EQ(s.sigma, plain[i].sigma);
      for (size_t k = 0; k < exact.size(); ++k) EXPECT_NEAR(s.sigma[k], exact[k], s.error);
      EXPECT_LE(2 * s.error, numerical_rank(s).tolerance);
      const double norm = reference::sigma(reference::centered(one))[0];
      EXPECT_NEAR(found[i].norm, norm, std::max(s.error / exact[0], 1e-6) * norm);
    }
  }
  EXPECT_EQ(spectra_of_batch(at::eye(12).to(at::kCUDA))[0].route, "gram");  // too coarse for its rank
  EXPECT_TRUE(spectra_of_batch(there.narrow(0, 0, 0)).empty());
}

TEST(Batch, AnEntryThatIsNotFiniteGivesNan) {
  at::Tensor x = at::eye(50).repeat({3, 1, 1});
  x[1][2][3] = NAN;
  const std::vector<CenteredSpectrum> found = centered_spectra_of_batch(x);
  EXPECT_TRUE(std::isnan(effective_rank(found[1].spectrum)));
  EXPECT_TRUE(std::isnan(found[1].norm));
  EXPECT_NEAR(effective_rank(found[2].spectrum), 50, 1e-4);
}

TEST(Batch, OrthogonalMapsAndScaleChangeNoRank) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({8, 15}, at::kDouble);
  const at::Tensor q = std::get<0>(at::linalg_qr(at::randn({8, 8}, at::kDouble)));
  const double rank = effective_rank(spectra_of_batch(x)[0]);
  EXPECT_NEAR(effective_rank(spectra_of_batch(q.mm(x))[0]), rank, 1e-12 * rank);
  EXPECT_NEAR(effective_rank(spectra_of_batch(x * 1e5)[0]), rank, 1e-12 * rank);
}

TEST(Batch, FloatEpsilonComesWithFloatData) {
  EXPECT_EQ(spectra_of_batch(at::eye(3))[0].epsilon, 0x1p-23);
  EXPECT_EQ(spectra_of_batch(at::eye(3, at::kDouble))[0].epsilon, 0x1p-52);
}

TEST(Batch, AnEmptyBatchHasNoSpectra) { EXPECT_TRUE(spectra_of_batch(at::empty({0, 3, 3})).empty()); }

TEST(Batch, AVectorOrWholeNumbersAreRefusedInWords) {
  try {
    spectra_of_batch(at::ones({64}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "a spectrum needs a matrix or a batch of matrices, but got 1 dimensions");
  }
  EXPECT_THROW(spectra_of_batch(at::ones({2, 2}, at::kLong)), Error);
}

}  // namespace
}  // namespace rankscope
