// The lens normed: what tells tokens apart behind a norm, whatever that norm has learned.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/lens_run.h"

namespace rankscope::testing {
namespace {

constexpr int64_t kWide = 40, kTokens = 30;

/// Seen behind a block whose tokens the final norm reads.
Collected behind(NormKind kind, const at::Tensor& x) {
  ModelSpec spec;
  spec.blocks.resize(1);
  spec.final_norm = {kind, 1e-12};
  const Packed packed({x.size(0)});
  const Packing packing = packed.packing();
  Seeing seeing(lens_named("normed"), {spec, 0, 17, 1, 0.3});
  seeing.whole({x, packing});
  return seeing.finish();
}

double plain(const at::Tensor& y) { return ((y - y.mean(0)).norm() / y.norm()).item<double>(); }

/// Sums of 1,200 doubles: each is off by at most that many roundings, and so are their ratios.
constexpr double kSums = 1e-12;

TEST(Normed, IsTheResidualOfTheTokensAsTheNormMakesThemWithoutGainAndBias) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({kTokens, kWide}, at::kDouble) + at::randn({1, kWide}, at::kDouble);
  const at::Tensor centred = x - x.mean(1, true);
  const at::Tensor layer = centred / centred.square().mean(1, true).sqrt(),
                   rms = x / x.square().mean(1, true).sqrt();
  EXPECT_NEAR(behind(NormKind::layer, x).content("residual_fro_rel_normed"), plain(layer), kSums);
  EXPECT_NEAR(behind(NormKind::rms, x).content("residual_fro_rel_normed"), plain(rms), kSums);
  EXPECT_NEAR(behind(NormKind::none, x).content("residual_fro_rel_normed"), plain(x), kSums);
  EXPECT_EQ(behind(NormKind::layer, x).content("normed_channels"), 0);
}

TEST(Normed, TokensWhoseSquaresAreNoNumbersAreNotAlike) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({kTokens, kWide}, at::kFloat) * 1e-26;
  // Sums of 1,200 floats, as above.
  EXPECT_NEAR(behind(NormKind::none, x).content("residual_fro_rel_normed"), plain(x.to(at::kDouble)),
              1200 * std::numeric_limits<float>::epsilon());
  EXPECT_EQ(behind(NormKind::none, x * 0).content("residual_fro_rel_normed"), 0);
}

// A LayerNorm takes the mean over channels off, and a channel of 1e5 is nearly all of that mean: behind the
// norm every other channel holds the same -1e5 / 40 beside numbers of size one. What tells tokens apart is
// still all of them.
TEST(Normed, AMassiveChannelIsFoundBeforeTheNormAndTakenOffBehindItWithItsShareOfTheMean) {
  at::manual_seed(2);
  at::Tensor x = at::randn({kTokens, kWide}, at::kDouble);
  const at::Tensor without = at::cat({x.narrow(1, 0, 7), x.narrow(1, 8, kWide - 8)}, 1);
  x.select(1, 7).fill_(1e5);
  const Collected got = behind(NormKind::layer, x);
  EXPECT_EQ(got.content("normed_channels"), 1);
  // The norm's scale is the same for all tokens to 1e-5, as the channel makes it; so is what the residual may
  // be off by.
  const at::Tensor centred = without - without.sum(1, true) / static_cast<double>(kWide);
  EXPECT_NEAR(got.content("residual_fro_rel_normed"), plain(centred), 1e-5);
  const at::Tensor spread = (x - x.mean(1, true));
  EXPECT_LT(plain(spread), 1e-3);  // what was read behind the norm
}

// Zeros are no measure of what is massive: a network padded with them is the network that it was.
TEST(Normed, ChannelsThatAreZeroChangeNothing) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({kTokens, kWide}, at::kDouble),
                   padded = at::cat({x, at::zeros({kTokens, 2 * kWide}, at::kDouble)}, 1);
  for (const NormKind kind : {NormKind::rms, NormKind::none}) {
    const Collected got = behind(kind, padded);
    EXPECT_EQ(got.content("normed_channels"), 0);
    EXPECT_NEAR(got.content("residual_fro_rel_normed"), behind(kind, x).content("residual_fro_rel_normed"),
                kSums);
  }
}

TEST(Normed, SaysWhetherTheChannelsThatItLeavesOutTellTokensApart) {
  at::manual_seed(6);
  at::Tensor x = at::randn({kTokens, kWide}, at::kDouble);
  EXPECT_EQ(behind(NormKind::none, x).content("normed_left_out"), 0);
  x.select(1, 7).fill_(1e5);
  EXPECT_LT(behind(NormKind::none, x).content("normed_left_out"), kSums);
  x.select(1, 7).copy_(1e5 * at::randn({kTokens}, at::kDouble));
  EXPECT_NEAR(behind(NormKind::none, x).content("normed_left_out"), plain(x.narrow(1, 7, 1)), kSums);
}

// Behind a block that ends in a norm the tokens have gone through it, gain and bias included.
TEST(Normed, AMassiveChannelBeforeANormBehindTheBlockIsTakenOffTogetherWithItsShareOfTheMean) {
  at::manual_seed(3);
  const at::Tensor words = at::randn({kTokens, kWide}, at::kDouble);
  const at::Tensor gain = at::randn({kWide}, at::kDouble).exp(), bias = at::randn({kWide}, at::kDouble);
  ModelSpec spec;
  spec.blocks = {classic_block(NormPlace::post, {NormKind::layer, 1e-12}, {})};
  const auto seen = [&](const at::Tensor& given) {
    const at::Tensor c = given - given.mean(1, true), sigma = c.square().mean(1, true).sqrt();
    const at::Tensor x = c / sigma * gain + bias;
    const Packed packed({kTokens});
    const Packing packing = packed.packing();
    Seeing seeing(lens_named("normed"), {spec, 0, 17, 1, 0.3});
    Weights weights;
    weights.set("ln2.w", gain);
    weights.set("ln2.b", bias);
    seeing.weights({spec.blocks.front(), weights});
    seeing.whole({x, packing});
    return std::pair(seeing.finish(), sigma);
  };
  const auto [healthy, size] = seen(words);
  EXPECT_EQ(healthy.content("normed_channels"), 0);
  const at::Tensor c = words - words.mean(1, true);
  EXPECT_NEAR(healthy.content("residual_fro_rel_normed"), plain(c / size * gain + bias), kSums);

  at::Tensor massive = words.clone();
  massive.select(1, 7).fill_(1e5);
  const auto [got, sigma] = seen(massive);
  EXPECT_EQ(got.content("normed_channels"), 1);
  at::Tensor kept = at::ones({kWide}, at::kDouble);
  kept[7] = 0;
  const at::Tensor rest = (words - at::mv(words, kept).unsqueeze(1) / (kWide - 1)) * kept;
  // Numbers of size 1 / sigma are what 64-bit differences of numbers of size one leave: 1e-16 beside 6e-5.
  EXPECT_NEAR(got.content("residual_fro_rel_normed"), plain((rest / sigma * gain + bias) * kept), 1e-10);
}

}  // namespace
}  // namespace rankscope::testing
