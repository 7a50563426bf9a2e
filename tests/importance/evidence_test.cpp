// What samples say of a rise of the loss, and a search among changes of which some look free by chance.
#include "importance/evidence.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"

namespace rankscope {
namespace {

// Quantiles of Student's t as printed in any table, to its three decimals.
TEST(Rise, EndsWhereTablesOfStudentsTSay) {
  EXPECT_NEAR((Rise{0, 1, 4}).upper(0.025), 2.776, 5e-4);
  EXPECT_NEAR((Rise{0, 1, 1}).upper(0.05), 6.314, 5e-4);
  EXPECT_NEAR((Rise{1, 2, 30}).upper(0.05), 1 + 2 * 1.697, 1e-3);
  EXPECT_NEAR((Rise{1, 2, 30}).lower(0.05), 1 - 2 * 1.697, 1e-3);
}

TEST(Rise, IsThatOfPairsSoThatWhatSamplesShareFallsOut) {
  // Losses far apart, differences alike.
  const Rise alike = paired_rise({1, 5, 9, 2}, {1.1, 5.1, 9.1, 2.1}, {10, 10, 10, 10});
  EXPECT_NEAR(alike.mean, 0.1, 1e-12);
  EXPECT_NEAR(alike.error, 0, 1e-12);
  EXPECT_NEAR(alike.freedom, 3, 1e-12);
  // By hand: mean 0.2, squares .04, .01, .01, .04 over 3 * 4.
  const Rise spread = paired_rise({0, 0, 0, 0}, {0, 0.1, 0.3, 0.4}, {7, 7, 7, 7});
  EXPECT_NEAR(spread.mean, 0.2, 1e-12);
  EXPECT_NEAR(spread.error, std::sqrt(0.1 / 12), 1e-12);
  // One long sample among short ones counts as little more than one.
  EXPECT_LT(paired_rise({0, 0, 0}, {1, 2, 3}, {1000, 1, 1}).freedom, 0.01);
}

TEST(Rise, OfOneSampleHasNoEnd) {
  const Rise one = paired_rise({1}, {1}, {10});
  EXPECT_TRUE(std::isinf(one.upper(0.05)));
  EXPECT_EQ(held_against(one, 1, 1e9), Held::undecided);
}

TEST(Rise, SaysHowManySamplesWouldDo) {
  for (const Rise& few : {Rise{0.01, 0.1, 24}, Rise{0.0, 0.02, 3}, Rise{-0.2, 0.3, 5}}) {
    const double needed = few.samples_for(0.05, 0.0025);
    // The error falls with the root of the number.
    const auto upper_of = [&](double n) {
      return Rise{few.mean, few.error * std::sqrt((few.freedom + 1) / n), n - 1}.upper(0.0025);
    };
    EXPECT_LE(upper_of(needed), 0.05);
    EXPECT_GT(upper_of(needed - 1), 0.05);
    EXPECT_GT(needed, few.freedom + 1);  // these do not decide
  }
  EXPECT_TRUE(std::isinf((Rise{0.06, 0.1, 24}).samples_for(0.05, 0.025)));
}

TEST(HeldOut, IsWithinOverOrCannotTell) {
  EXPECT_EQ(held_against({0.01, 0.01, 50}, 51, 0.05), Held::within);
  EXPECT_EQ(held_against({0.20, 0.01, 50}, 51, 0.05), Held::over);
  EXPECT_EQ(held_against({0.04, 0.01, 50}, 51, 0.05), Held::undecided);
}

TEST(HeldOut, CannotTellFromFewerSamplesThanAVerdict) {
  EXPECT_EQ(held_against({0.01, 1e-9, 2}, 3, 0.05), Held::undecided);
  EXPECT_EQ(held_against({0.01, 1e-9, 3}, 4, 0.05), Held::within);
}

TEST(Looks, SpendTheirChanceOnce) {
  double spent = 0;
  for (int64_t k = 1; k <= 100000; ++k) spent += level_of_look(k);
  EXPECT_LE(spent, kSearchLevel);
  EXPECT_GT(spent, 0.99 * kSearchLevel);
}

// Searches of 24 cuts, each with this true cost and spread, over so many samples: how many searches take one,
// by the mean alone and by the upper end.
struct Taken {
  int by_mean = 0, by_bound = 0;
};
Taken searches(int count, double cost, double spread, int samples, double budget) {
  Taken taken;
  for (int i = 0; i < count; ++i) {
    const Philox random{static_cast<uint64_t>(i), 11, 0};
    bool mean = false, bound = false;
    for (int64_t look = 1; look <= 24; ++look) {
      std::vector<double> full(static_cast<size_t>(samples), 3.0), cut = full;
      for (size_t s = 0; s < cut.size(); ++s)
        cut[s] += cost + spread * random.normal(static_cast<uint64_t>(look) * 4096 + s);
      const Rise rise = paired_rise(full, cut, std::vector<int64_t>(cut.size(), 20));
      mean = mean || rise.mean <= budget;
      bound = bound || rise.upper(level_of_look(look)) <= budget;
    }
    taken.by_mean += mean;
    taken.by_bound += bound;
  }
  return taken;
}

// Every cut costs twice the budget; on a dozen texts some look free.
TEST(Search, DoesNotTakeAWrongCutThatLooksFreeByChance) {
  const Taken taken = searches(1000, 0.1, 0.4, 12, 0.05);
  EXPECT_GT(taken.by_mean, 900);
  // One in twenty at most, and three standard errors of the count.
  EXPECT_LT(taken.by_bound, 50 + 3 * std::sqrt(1000 * 0.05 * 0.95));
}

TEST(Search, TakesWhatIsFreeWhereThereIsTextEnough) {
  EXPECT_GT(searches(200, 0.0, 0.2, 400, 0.05).by_bound, 198);
}

}  // namespace
}  // namespace rankscope
