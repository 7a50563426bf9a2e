#include "studies/choice.h"

#include <gtest/gtest.h>

#include <tuple>

#include "base/error.h"
#include "theory/lower_bound.h"

namespace rankscope {
namespace {

TEST(Choose, CountsWhatABlockHas) {
  // d = 8, mlp 32: 4 d^2 + 2 d 32 matrices, 4 d + 32 + d biases... two norms of 2 d
  const HeadChoice c = choose_heads({.width = 8, .layers = 3, .context = 10}, {2}).choices.front();
  EXPECT_EQ(c.rank, 4);
  EXPECT_EQ(c.parameters, 3 * (4 * 64 + 2 * 8 * 32 + 4 * 8 + 32 + 8 + 4 * 8));
  EXPECT_EQ(c.flops, 3 * (2 * (4 * 64 + 2 * 8 * 32) + 4 * 10 * 8));
  EXPECT_EQ(c.kv_bytes, 3 * 2 * 8 * 2);
  EXPECT_EQ(c.bound, lower_bound(8, 4, 2));
}

TEST(Choose, SharedKeysAndValuesShrinkTheCache) {
  const HeadChoices r = choose_heads({.width = 64, .layers = 1, .kv_heads = 2}, {4, 8});
  EXPECT_EQ(r.choices[0].kv_bytes, 2 * 2 * 16 * 2);
  EXPECT_EQ(r.choices[1].kv_bytes, 2 * 2 * 8 * 2);
}

TEST(Choose, MoreHeadsAtEqualCostTrainWorseOnATaskThatNeedsRank) {
  const HeadChoices r = choose_heads({.width = 1024, .layers = 24}, {1, 4, 16, 64});
  for (size_t i = 1; i < r.choices.size(); ++i) {
    ASSERT_TRUE(r.choices[i].proxy);
    EXPECT_GT(r.choices[i].proxy->mean, r.choices[i - 1].proxy->mean);
    EXPECT_FALSE(r.choices[i].proxy->between);
    EXPECT_EQ(r.choices[i].parameters, r.choices[0].parameters);
  }
}

TEST(Choose, BetweenTwoTrainedRanksTheErrorIsInterpolatedAndSaysSo) {
  const HeadChoices r = choose_heads({.width = 768, .layers = 12}, {8, 12, 16, 96});
  ASSERT_TRUE(r.choices[1].proxy);
  EXPECT_TRUE(r.choices[1].proxy->between);
  EXPECT_GT(r.choices[1].proxy->mean, r.choices[0].proxy->mean);
  EXPECT_LT(r.choices[1].proxy->mean, r.choices[2].proxy->mean);
  EXPECT_FALSE(r.choices[3].proxy);  // below the smallest rank that was trained
}

// Three seeds scatter by Student's t with two degrees of freedom, and share one test set: at rank 16 (4
// heads) the seeds agree to 0.0002 and the test set errs by 0.0019, so 1.96 times that is the least the
// interval can be.
TEST(Choose, TheErrorHoldsForFewSeedsAndForTheTestSetTheyShare) {
  const HeadChoices r = choose_heads({.width = 1024, .layers = 24}, {1, 2, 4});
  EXPECT_NEAR(r.choices[2].proxy->half, 0.0039, 2e-4);
  // Rank 32: seeds .371, .335, .336; 4.303 standard errors of .012 each.
  EXPECT_NEAR(r.choices[1].proxy->half, 0.0518, 1e-3);
  // An interpolated value is known no better than both its neighbours.
  const HeadChoices between = choose_heads({.width = 768, .layers = 12}, {8, 12, 16});
  const auto& [low, mid, high] =
      std::tie(*between.choices[0].proxy, *between.choices[1].proxy, *between.choices[2].proxy);
  EXPECT_LE(mid.mean - mid.half, low.mean - low.half + 1e-12);
  EXPECT_GE(mid.mean + mid.half, high.mean + high.half - 1e-12);
}

TEST(Choose, SaysWhichOfTheValuesItComparesWereNotTrained) {
  const auto remark = [](int64_t width, const std::vector<int64_t>& heads) {
    return choose_heads({.width = width, .layers = 12}, heads).remarks.back();
  };
  const std::string between = remark(768, {3, 6, 12, 24}), trained = remark(1024, {4, 8, 16, 32});
  EXPECT_EQ(between.rfind("Interpolated between the ranks it was trained at, the proxy (", 0), 0u) << between;
  EXPECT_NE(between.find("~0.447 with 3 heads, ~0.861 with 24"), std::string::npos) << between;
  EXPECT_EQ(trained.rfind("The trained proxy (", 0), 0u) << trained;
  EXPECT_EQ(trained.find('~'), std::string::npos) << trained;
}

TEST(Choose, UnequalChoicesAreNotComparedByWhatWasTrainedAtEqualCost) {
  const HeadChoices r = choose_heads({.width = 1024, .layers = 24, .kv_heads = 4}, {4, 8, 16});
  EXPECT_NE(r.remarks.front().find("not equal"), std::string::npos) << r.remarks.front();
  EXPECT_NE(r.remarks.back().find("says nothing"), std::string::npos) << r.remarks.back();
}

TEST(Choose, SaysWhereTheBoundDoesNotDiscriminate) {
  EXPECT_NE(choose_heads({.width = 1024, .layers = 24}, {4, 8, 16, 32})
                .remarks[1]
                .find("does not tell these choices apart"),
            std::string::npos);
  EXPECT_NE(choose_heads({.width = 1024, .layers = 24}, {1, 16, 32})
                .remarks[1]
                .find("tells the least and the largest apart, and not all that lie between"),
            std::string::npos);
  EXPECT_NE(choose_heads({.width = 16, .layers = 2}, {1, 16}).remarks[1].find("tells them apart"),
            std::string::npos);
}

TEST(Choose, HeadsThatDoNotDivideTheWidthAreRefused) {
  try {
    choose_heads({.width = 1024, .layers = 24}, {4, 12});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "12 heads do not divide the width 1024");
  }
}

}  // namespace
}  // namespace rankscope
