#include "spectral/token_batch.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <cmath>

#include "stated_error.h"
#include "support/reference.h"

namespace rankscope {
namespace {

constexpr double kFloat = 0x1p-23, kDouble = 0x1p-52;

void add(TokenSpectraBatch& batch, size_t slot, const at::Tensor& x, bool with_mean, double epsilon) {
  const at::Tensor r = reference::centered(x).contiguous(), mean = reference::wide(x).mean(0).contiguous();
  batch.add(slot, r.data_ptr<double>(), with_mean ? mean.data_ptr<double>() : nullptr, x.size(0), x.size(1),
            epsilon);
}

TEST(TokenBatch, ManyShapesAtOnceMatchTheReference) {
  at::manual_seed(1);
  std::vector<at::Tensor> samples;
  for (const auto& [m, n] :
       {std::pair{1, 5}, {2, 9}, {9, 2}, {16, 16}, {30, 45}, {45, 30}, {1, 1}, {64, 100}})
    for (const double offset : {0.0, 3.0, 1e4})
      samples.push_back(at::randn({m, n}, at::kDouble) + offset * at::randn({1, n}, at::kDouble));
  for (const double epsilon : {kFloat, kDouble})
    for (const bool with_mean : {false, true}) {
      TokenSpectraBatch batch(samples.size());
      for (size_t i = 0; i < samples.size(); ++i) add(batch, i, samples[i], with_mean, epsilon);
      batch.compute();
      for (size_t i = 0; i < samples.size(); ++i) {
        if (samples[i].size(0) > 1)
          expect_within_error(batch.of(i).centered, reference::centered(samples[i]));
        if (with_mean) expect_within_error(batch.of(i).plain, samples[i]);
      }
    }
}

TEST(TokenBatch, NearlyAlikeTokensKeepAllDigitsOfTheirDifferences) {
  at::manual_seed(2);
  for (const auto& [m, n] : {std::pair{10, 30}, {30, 10}}) {
    const at::Tensor r = reference::centered(at::randn({m, n}, at::kDouble)) * 1e-9;
    const at::Tensor mean = at::randn({n}, at::kDouble);
    TokenSpectraBatch batch(1);
    batch.add(0, r.data_ptr<double>(), mean.data_ptr<double>(), m, n, kFloat);
    batch.compute();
    EXPECT_NEAR(effective_rank(batch.of(0).centered), reference::effective_rank(reference::sigma(r)), 1e-5);
    EXPECT_NEAR(effective_rank(batch.of(0).plain), 1, 1e-5);
  }
}

TEST(TokenBatch, ASampleThatIsNotFiniteIsNanAndSpoilsNoOther) {
  at::manual_seed(3);
  at::Tensor x = at::randn({6, 8}, at::kDouble);
  TokenSpectraBatch batch(3);
  add(batch, 0, x, true, kFloat);
  add(batch, 2, x, true, kFloat);
  x[2][3] = std::nan("");
  add(batch, 1, x, true, kFloat);
  batch.compute();
  EXPECT_TRUE(std::isnan(effective_rank(batch.of(1).plain)));
  EXPECT_TRUE(std::isnan(effective_rank(batch.of(1).centered)));
  EXPECT_EQ(batch.of(0).plain.sigma, batch.of(2).plain.sigma);
}

}  // namespace
}  // namespace rankscope
