// The runners that train nothing, against the values of the specification sheet.
#include <gtest/gtest.h>

#include "base/error.h"
#include "studies/run_one.h"

namespace rankscope {
extern const Runner runner_features, runner_representation, runner_vote;
namespace {

double random_heads_error(const char* construction, int64_t d, int64_t heads) {
  double sum = 0;
  for (int64_t seed = 0; seed < 5; ++seed)
    sum += test::outcome_of(
               runner_features,
               {{"construction", std::string(construction)}, {"d", d}, {"heads", heads}, {"seed", seed}})
               .at("mse");
  return sum / 5;
}

// The sheet has three digits, of a mean over other draws: the draws of 128 heads differ by 0.006, of 1,024 by
// 0.0004.
TEST(FeaturesRunner, FindsTheErrorsOfEveryConstruction) {
  EXPECT_NEAR(random_heads_error("uniform", 8, 128), 0.247, 0.012);
  EXPECT_NEAR(random_heads_error("uniform", 8, 1024), 0.175, 0.002);
  EXPECT_NEAR(random_heads_error("as-coded", 8, 1024), 0.166, 0.002);
  EXPECT_NEAR(random_heads_error("gaussian", 8, 1024), 0.1858, 0.002);
}

TEST(FeaturesRunner, StaysAboveTheBound) {
  const auto values = test::outcome_of(runner_features, {{"d", int64_t{8}}, {"heads", int64_t{64}}});
  EXPECT_GT(values.at("mse"), values.at("lower_bound"));
}

TEST(RepresentationRunner, HasThePeaksOfTheFigureAndTheCorrectOnes) {
  const auto peak = [](const char* normalisation, int64_t d) {
    return test::outcome_of(runner_representation, {{"normalisation", std::string(normalisation)}, {"d", d}})
        .at("u");
  };
  EXPECT_NEAR(peak("published", 4), 1.349e8, 0.0005e8);
  EXPECT_NEAR(peak("published", 8), 6.029e16, 0.0005e16);
  EXPECT_NEAR(peak("correct", 4), 2.65e6, 0.005e6);
  EXPECT_NEAR(peak("correct", 6), 8.33e9, 0.005e9);
}

TEST(RepresentationRunner, AnEvenDegreeIsRefused) {
  EXPECT_THROW(test::outcome_of(runner_representation, {{"degree", int64_t{10}}}), Error);
}

TEST(VoteRunner, CountsTheVotesOfTwoPointsAndTheAdvantageAmongMore) {
  EXPECT_NEAR(test::outcome_of(runner_vote, {{"heads", int64_t{4096}}}).at("mse"), 0.122, 0.002);
  const auto values = test::outcome_of(runner_vote, {{"d", int64_t{16}}, {"n", int64_t{8}}});
  EXPECT_FALSE(values.contains("mse"));
  EXPECT_NEAR(values.at("advantage"), 0.060, 0.0005 + 4 * values.at("advantage_stderr"));
}

TEST(VoteRunner, MorePointsThanDimensionsAreRefused) {
  EXPECT_THROW(test::outcome_of(runner_vote, {{"d", int64_t{4}}, {"n", int64_t{8}}}), Error);
}

}  // namespace
}  // namespace rankscope
