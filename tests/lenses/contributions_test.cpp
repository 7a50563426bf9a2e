// How evenly heads contribute, against what they write (the sheet on Multiformer, (d) 4).
#include <gtest/gtest.h>

#include <cmath>

#include "support/lens_run.h"

namespace rankscope::testing {
namespace {

constexpr int64_t kHeads = 3, kWidth = 10, kOwn = 4;

struct Layer {
  at::Tensor z, W_O;
  static Layer random(int64_t tokens) {
    return {at::randn({tokens, kHeads, kOwn}, at::kDouble), at::randn({kWidth, kHeads * kOwn}, at::kDouble)};
  }
  at::Tensor written(int64_t h) const { return z.select(1, h).matmul(W_O.narrow(1, h * kOwn, kOwn).t()); }
  Collected see(const std::vector<int64_t>& lengths) const {
    const Packed packed(lengths);
    const Packing packing = packed.packing();
    const at::Tensor x = at::zeros({z.size(0), kWidth}, at::kDouble);
    Seeing seeing(lens_named("contributions"));
    seeing.factored({z, W_O, x, packing});
    return seeing.finish();
  }
};

TEST(Contributions, AreMediansOverTokensOfSharesThatSumToOne) {
  at::manual_seed(1);
  const Layer layer = Layer::random(7);
  const at::Tensor b = at::randn({kWidth}, at::kDouble);
  at::Tensor sizes = at::zeros({7, kHeads}, at::kDouble), sum = b.expand({7, kWidth}).clone();
  for (int64_t h = 0; h < kHeads; ++h) {
    sizes.select(1, h).copy_(layer.written(h).abs().sum(-1));
    sum += layer.written(h);
  }
  const at::Tensor y = layer.z.flatten(1).matmul(layer.W_O.t()) + b;
  EXPECT_LE((sum - y).abs().max().item<double>(), 1e-10);  // every single number, so that none cancel
  const at::Tensor shares = sizes / sizes.sum(1, true);
  EXPECT_LE((shares.sum(1) - 1).abs().max().item<double>(), 1e-12);
  const Collected got = layer.see({7});
  double total = 0, entropy = 0;
  for (int h = 0; h < kHeads; ++h) {
    const double median = shares.select(1, h).median().item<double>();  // of an odd number
    EXPECT_NEAR(got.of("head_share", 0, h), median, 1e-12);
    total += median;
  }
  for (int h = 0; h < kHeads; ++h) {
    const double p = got.of("head_share", 0, h) / total;
    entropy -= p * std::log(p);
  }
  EXPECT_NEAR(got.of("head_evenness"), entropy / std::log(3.0), 1e-12);
}

TEST(Contributions, OfHeadsAlikeAreEvenAndOfOneHeadAreNot) {
  at::manual_seed(2);
  Layer layer = Layer::random(6);
  for (int64_t h = 1; h < kHeads; ++h) {
    layer.z.select(1, h).copy_(layer.z.select(1, 0));
    layer.W_O.narrow(1, h * kOwn, kOwn).copy_(layer.W_O.narrow(1, 0, kOwn));
  }
  EXPECT_NEAR(layer.see({6}).of("head_evenness"), 1.0, 1e-12);
  layer.W_O.narrow(1, kOwn, 2 * kOwn).zero_();
  const Collected got = layer.see({6});
  EXPECT_EQ(got.of("head_share", 0, 0), 1.0);
  EXPECT_EQ(got.of("head_share", 0, 1), 0.0);
  EXPECT_EQ(got.of("head_evenness"), 0.0);
}

TEST(Contributions, AreNotDefinedWhereNoHeadWritesAnything) {
  at::manual_seed(3);
  Layer layer = Layer::random(5);
  layer.z.zero_();
  EXPECT_FALSE(layer.see({5}).has("head_evenness"));
}

TEST(Contributions, OfSamplesAreTheirOwn) {
  at::manual_seed(4);
  const Layer layer = Layer::random(9);
  const Layer second{layer.z.narrow(0, 4, 5), layer.W_O};
  const Collected both = layer.see({4, 5}), alone = second.see({5});
  for (int h = 0; h < kHeads; ++h)
    EXPECT_NEAR(both.of("head_share", 1, h), alone.of("head_share", 0, h), 1e-14);
}

}  // namespace
}  // namespace rankscope::testing
