#include "lenses/support/mask.h"

#include <gtest/gtest.h>

#include "lenses/support/median.h"
#include "lenses/support/uniform.h"
#include "support/reference.h"

namespace rankscope {
namespace {

TEST(Mask, RangesAreTheKeysAndQueriesThatSeeEachOther) {
  for (const int64_t T : {1, 2, 5, 9})
    for (const bool causal : {false, true})
      for (const int64_t window : {0, 1, 3, 20}) {
        const Mask mask{T, causal, window};
        for (int64_t i = 0; i < T; ++i)
          for (int64_t j = 0; j < T; ++j) {
            const bool sees = reference::sees(i, j, causal, window);
            EXPECT_EQ(j >= mask.first_key(i) && j < mask.end_key(i), sees);
            EXPECT_EQ(i >= mask.first_query(j) && i < mask.end_query(j), sees);
          }
      }
}

TEST(Mask, WithoutACauseEveryQuerySeesEveryKeyHoweverManyThereAre) {
  const Mask mask{7, false, 0, 3};
  EXPECT_EQ(mask.keys(2), 7);
  EXPECT_EQ(mask.end_query(6) - mask.first_query(6), 3);
  EXPECT_EQ((Mask{7, false, 0}).queries, 7);
}

TEST(Uniform, AppliesAsTheFormedMatrixAndItsTranspose) {
  at::manual_seed(1);
  for (const bool causal : {false, true})
    for (const int64_t window : {0, 1, 4}) {
      const int64_t T = 11;
      const LinearMap map = centered_uniform({T, causal, window});
      const at::Tensor u = reference::centered(reference::uniform(T, causal, window));
      const at::Tensor x = at::randn({T}, at::kDouble);
      at::Tensor y = at::empty({T}, at::kDouble);
      map.apply(x.data_ptr<double>(), y.data_ptr<double>());
      EXPECT_TRUE(at::allclose(y, u.mv(x), 1e-13, 1e-13));
      map.adjoint(x.data_ptr<double>(), y.data_ptr<double>());
      EXPECT_TRUE(at::allclose(y, u.t().mv(x), 1e-13, 1e-13));
    }
}

TEST(Uniform, ReceivedIsTheMeanOverTheQueriesThatSee) {
  for (const bool causal : {false, true})
    for (const int64_t window : {0, 3}) {
      const std::vector<double> got = received_from_uniform({9, causal, window});
      for (int64_t j = 0; j < 9; ++j)
        EXPECT_NEAR(got[static_cast<size_t>(j)],
                    reference::received(reference::uniform(9, causal, window), j, causal, window), 1e-15);
    }
}

TEST(AboveMedian, FlagsWhatExceedsTwentyMedians) {
  EXPECT_EQ(above_median(std::vector<double>{1, 1, 1, 20, 21}), (std::vector<uint8_t>{0, 0, 0, 0, 1}));
  EXPECT_EQ(above_median(std::vector<double>{0, 0, 0, 1, 2}), (std::vector<uint8_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ(above_median(std::vector<double>{0, 0}), (std::vector<uint8_t>{0, 0}));
  EXPECT_TRUE(above_median({}).empty());
}

}  // namespace
}  // namespace rankscope
