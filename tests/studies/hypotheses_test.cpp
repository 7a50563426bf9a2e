// Which hypotheses of the theorem on collapse a network meets, and towers in which LayerNorm decides.
#include <gtest/gtest.h>

#include "base/error.h"
#include "studies/run_one.h"
#include "support/temporary_folder.h"

namespace rankscope {
extern const Runner runner_hypotheses, runner_norm_tower;
namespace {

using Values = std::map<std::string, double>;

Config deep(const char* look, double skip, int64_t depth) {
  return {{"task", std::string("sort")},
          {"layers", int64_t{6}},
          {"d", int64_t{16}},
          {"train", int64_t{60}},
          {"test", int64_t{16}},
          {"epochs", int64_t{2}},
          {"skip", skip},
          {"look", std::string(look)},
          {"depth", depth}};
}
Values read(const Config& c) {
  const TemporaryFolder folder;
  return test::outcome_of(runner_hypotheses, c, folder.path());
}

TEST(Hypotheses, SkipsRemovedFromANetworkTrainedWithoutAnyChangeNothing) {
  Values never = read(deep("trained", 0, 3)), removed = read(deep("removed", 0, 3));
  never.erase("seconds"), removed.erase("seconds");
  EXPECT_EQ(never, removed);
  const Values with = read(deep("trained", 1, 6)), without = read(deep("removed", 1, 6));
  EXPECT_EQ(with.at("final_loss"), without.at("final_loss"));  // one training
  EXPECT_LT(without.at("residual_log10"), with.at("residual_log10") - 1);
}

// A tower of attention alone loses its residual by the cubic law, a skip of any size keeps it. The law is one
// of small residuals: corrections to it are of their order, here 1e-4 at depth 2.
TEST(Hypotheses, TheCubicLawIsThatOfNetworksWithoutSkips) {
  const Values third = read(deep("start", 0, 3)), fourth = read(deep("start", 0, 4));
  EXPECT_LT(third.at("residual_log10"), -4);
  EXPECT_NEAR(fourth.at("local_exponent"), 3, 0.1);
  EXPECT_EQ(fourth.at("holds"), 1);
  EXPECT_LT(fourth.at("oscillation"), 1e-4);
  EXPECT_GT(read(deep("start", 1, 6)).at("residual_log10"), -1);
  EXPECT_GT(read(deep("start", 0.25, 6)).at("residual_log10"), -2);
}

// What the tokens of the last depth differ in is all that tells the answers of a sequence apart; in front of
// attention that makes all tokens equal it is of no use.
TEST(Hypotheses, DifferencesAreOfUseWhereTheyAreLeft) {
  EXPECT_GT(read(deep("start", 1, 6)).at("use"), 0.3);
  EXPECT_LT(read(deep("start", 0, 1)).at("use"), 1e-3);
}

TEST(Hypotheses, AGainSlowsCollapseAndDoesNotStopItAndANormUndoesIt) {
  Config c = deep("start", 0, 6);
  c["mlp"] = std::string("on");
  const auto residual = [&](const char* norm, double gain) {
    c["norm"] = std::string(norm);
    c["mlp_gain"] = gain;
    return read(c).at("residual_log10");
  };
  EXPECT_LT(residual("none", 1), -50);
  EXPECT_GT(residual("none", 3000), residual("none", 1));
  EXPECT_LT(residual("none", 3000), -50);
  // A LayerNorm takes a factor out up to its epsilon of 1e-12 and rounding, which the six layers triple.
  EXPECT_NEAR(residual("layer", 1) / residual("layer", 3000), 1, 1e-6);
}

TEST(Hypotheses, WithoutANormASkipIsWholeOrNotThere) {
  Config c = deep("start", 0.5, 1);
  c["norm"] = std::string("none");
  EXPECT_THROW(read(c), Error);
  EXPECT_THROW(read(deep("start", 1, 7)), Error);
}

Values tower(double shared, const char* norm, int64_t depth) {
  return test::outcome_of(runner_norm_tower,
                          {{"shared", shared}, {"norm", std::string(norm)}, {"depth", depth}});
}

// Attention of this tower multiplies differences by .9 (eight corners, 3.8 nats at the start); a value map
// that multiplies what is shared by .5 leaves nothing but differences, if somebody keeps their size, and with
// it the scores.
TEST(NormTower, LayerNormKeepsTokensApartWhereItsAbsenceDoesNot) {
  EXPECT_GT(tower(0.5, "layer", 50).at("spread"), 0.999);
  EXPECT_GT(tower(0.5, "layer", 50).at("effective_rank"), 6);
  EXPECT_LT(tower(0.5, "none", 12).at("residual_log10"), -20);
  EXPECT_LT(tower(1, "layer", 12).at("spread"), 1e-6);  // the norm alone does not
  EXPECT_NEAR(tower(0.5, "layer", 0).at("spread"), 0.8, 0.02);
}

}  // namespace
}  // namespace rankscope
