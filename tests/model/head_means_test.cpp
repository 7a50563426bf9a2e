// What heads carry on average, and networks in which one carries just that.
#include "model/head_means.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

struct Carried : BlockObserver {
  bool wants(std::string_view site) const override { return site == "attn.hook_z"; }
  void see(std::string_view site, const at::Tensor& x, const TilePlace&) override {
    if (site == "attn.hook_z") z.push_back(x.clone());
  }
  std::vector<at::Tensor> z;
};

class HeadMeansTest : public testing::Test {
 protected:
  ModelSpec spec_ = test::tiny_spec(NormPlace::pre);
  std::unique_ptr<WeightSource> source_ = random_source(spec_, 3, "float64", "cpu");
  std::vector<Batch> batches_ = make_batches(test::random_samples({9, 12, 7}, 50), spec_, 2);

  /// What the heads of the first block carry, [N, H, d_v].
  at::Tensor carried(const BlockSpec& block) {
    Carried seen;
    for (const Batch& b : batches_)
      run_block(embed(b, spec_, source_->load("embed"), *source_), block, source_->load("blocks.0"), b, seen);
    return at::cat(seen.z);
  }
};

TEST_F(HeadMeansTest, AreTheMeansOverAllTokensOfAllSamples) {
  const std::vector<HeadMeans> means = head_means(*source_, batches_);
  ASSERT_EQ(means.size(), 3u);
  const at::Tensor z = carried(spec_.blocks[0]);
  for (int64_t h = 0; h < 4; ++h)
    for (int64_t i = 0; i < 6; ++i)  // a mean of 28 doubles
      EXPECT_NEAR(means[0].mean[static_cast<size_t>(h)][static_cast<size_t>(i)],
                  z.select(1, h).select(1, i).mean().item<double>(), 1e-14);
}

TEST_F(HeadMeansTest, AFixedHeadCarriesItsNumbersAndTheOthersWhatTheyDid) {
  const std::vector<double> numbers{1, 2, 3, 4, 5, 6};
  const at::Tensor before = carried(spec_.blocks[0]),
                   after = carried(with_fixed_head(spec_, 0, 2, numbers).blocks[0]);
  for (int64_t h = 0; h < 4; ++h) {
    const at::Tensor expected =
        h == 2 ? at::tensor(numbers, at::kDouble).expand({28, 6}) : before.select(1, h);
    EXPECT_TRUE(at::equal(after.select(1, h), expected)) << h;
  }
}

TEST_F(HeadMeansTest, UnderLearnedSinksBiasesMakeAHeadCarryNoOneThing) {
  for (BlockSpec& b : spec_.blocks) b.attention().sinks = true;
  const auto source = random_source(spec_, 3, "float64", "cpu");
  for (const HeadMeans& of : head_means(*source, batches_))
    for (const std::vector<double>& head : of.bare)
      for (const double x : head) EXPECT_EQ(x, 0);
}

// Rows of attention sum to one, so what biases make of every value is what they make the head carry.
TEST_F(HeadMeansTest, WhatBiasesMakeAHeadCarryIsWhatItCarriesWhenTokensSayNothing) {
  Weights weights = source_->load("blocks.0");
  const BranchSpec& branch = *spec_.blocks[0].attention_branch();
  const at::Tensor v =
      at::mv(weights.get("attn.W_V"), weights.get(branch.norm_name + ".b")) + weights.get("attn.b_V");
  const std::vector<HeadMeans> means = head_means(*source_, batches_);
  for (size_t h = 0; h < 4; ++h)
    for (size_t i = 0; i < 6; ++i)
      EXPECT_NEAR(means[0].bare[h][i], v[static_cast<int64_t>(6 * h + i)].item<double>(), 1e-14);
}

}  // namespace
}  // namespace rankscope
