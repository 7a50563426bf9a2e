#include <gtest/gtest.h>

#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope::testing {
namespace {

void expect_matches(const Collected& got, const at::Tensor& x, const std::vector<uint8_t>& flags) {
  const at::Tensor content = reference::content_rows(x, flags), kept = reference::ordinary_channels(content);
  const at::Tensor r = reference::centered(kept);
  const std::vector<double> s = reference::sigma(r);
  const double full = static_cast<double>(s.size());
  const double error = std::sqrt(0x1p-52 * static_cast<double>(kept.size(0) + kept.size(1))) * s[0];
  EXPECT_NEAR(got.content("residual_fro_rel_trimmed"), reference::frobenius(r) / reference::frobenius(kept),
              1e-12);
  EXPECT_NEAR(got.content("effective_rank_centered_rel_trimmed"), reference::effective_rank(s) / full,
              reference::effective_rank_tolerance(s, error) / full);
  EXPECT_EQ(got.content("trimmed_channels"), static_cast<double>(x.size(1) - kept.size(1)));
}

TEST(Trimmed, MatchesTheReferenceWithAndWithoutSomethingToTrim) {
  at::manual_seed(1);
  for (const bool massive : {false, true}) {
    at::Tensor x = at::randn({24, 40});
    if (massive) x.select(1, 7).mul_(300), x.select(1, 30).add_(900), x[4] *= 400.0;
    std::vector<uint8_t> flags(24, 1);
    flags[0] = 0;
    const Collected got = see_residual("trimmed", x, Packed({24}, flags));
    expect_matches(got, x, flags);
    EXPECT_EQ(got.content("trimmed_channels"), massive ? 2 : 0);
    EXPECT_EQ(got.content("trimmed_tokens"), massive ? 1 : 0);
  }
}

TEST(Trimmed, AHealthyLayerWithOneMassiveChannelIsStillHealthy) {
  at::manual_seed(2);
  at::Tensor x = at::randn({32, 64});
  x.select(1, 9).add_(5000);
  EXPECT_LT(see_residual("residual", x).content("residual_fro_rel"), 1e-2);  // looks collapsed
  const Collected got = see_residual("trimmed", x);
  EXPECT_GT(got.content("residual_fro_rel_trimmed"), 0.9);
  EXPECT_GT(got.content("effective_rank_centered_rel_trimmed"), 0.7);
  EXPECT_EQ(got.content("trimmed_channels"), 1);
}

TEST(Trimmed, ACollapsedLayerWithOneMassiveTokenIsStillCollapsed) {
  at::manual_seed(3);
  at::Tensor x = at::randn({1, 64}).repeat({32, 1}) + 1e-4 * at::randn({32, 64});
  x[0] *= 1000.0;
  const Collected got = see_residual("trimmed", x);
  EXPECT_LT(got.content("residual_fro_rel_trimmed"), 1e-3);
  EXPECT_EQ(got.content("trimmed_tokens"), 1);
}

TEST(Trimmed, ReportsContentOnly) {
  for (const auto& [key, values] : see_residual("trimmed", at::eye(4)).samples)
    EXPECT_EQ(std::get<2>(key), "content") << std::get<0>(key);
}

TEST(Trimmed, WhereMostChannelsAreZeroTheOthersAreNotMassive) {
  at::manual_seed(4);
  at::Tensor x = at::zeros({8, 30});
  x.narrow(1, 0, 10).normal_();
  EXPECT_EQ(see_residual("trimmed", x).content("trimmed_channels"), 0);
}

TEST(Trimmed, ASpecialTokenThatIsMassiveIsNotCountedAsTrimmed) {
  at::manual_seed(5);
  at::Tensor x = at::randn({10, 6});
  x[0] *= 1000.0;
  std::vector<uint8_t> flags(10, 1);
  flags[0] = 0;
  EXPECT_EQ(see_residual("trimmed", x, Packed({10}, flags)).content("trimmed_tokens"), 0);
}

TEST(Trimmed, OfOneContentTokenThereIsNothing) {
  EXPECT_TRUE(see_residual("trimmed", at::eye(3), Packed({3}, {0, 1, 0})).samples.empty());
}

}  // namespace
}  // namespace rankscope::testing
