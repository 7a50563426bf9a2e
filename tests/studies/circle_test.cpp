#include "tasks/support/circle.h"

#include <gtest/gtest.h>

#include <cmath>

#include "studies/study.h"
#include "support/temporary_folder.h"

namespace rankscope {
extern const Runner runner_circle;
namespace {

double distance(const std::vector<double>& a, const std::vector<double>& b, size_t i, size_t j) {
  return std::hypot(a[2 * i] - b[2 * j], a[2 * i + 1] - b[2 * j + 1]);
}

TEST(CircleWalk, PointsAreOppositeAndWalkOneStep) {
  const TokenSet set = circle_walk(12, false);
  ASSERT_EQ(set.sequences(), 6);
  EXPECT_NEAR(circle_step(12), 0.3 * std::sqrt(2 - std::sqrt(3.0)), 1e-15);  // a chord of 30 degrees
  for (size_t s = 0; s < 6; ++s) {
    EXPECT_NEAR(distance(set.points, set.points, 2 * s, 2 * s + 1), 2 * kCircleRadius, 1e-15);
    for (size_t i = 2 * s; i < 2 * s + 2; ++i) {
      EXPECT_NEAR(std::hypot(set.points[2 * i], set.points[2 * i + 1]), kCircleRadius, 1e-15);
      EXPECT_NEAR(distance(set.points, set.targets, i, i), circle_step(12), 1e-15);
      // One target is the other's start: the walk is a circle.
      if (s + 1 < 6) {
        EXPECT_NEAR(distance(set.targets, set.points, i, i + 2), 0, 1e-15);
      }
    }
  }
}

TEST(CircleWalk, AsPublishedIsOnePlaceShort) {
  const TokenSet set = circle_walk(12, true);
  EXPECT_EQ(set.sequences(), 5);
  EXPECT_NEAR(distance(set.points, set.points, 0, 1), 2 * kCircleRadius * std::cos(M_PI / 12), 1e-15);
}

std::map<std::string, double> result(const TemporaryFolder& folder, Config given) {
  const Config config = complete(runner_circle.keys, given, "test");
  runner_circle.check(config);
  const std::string id = trial_id(runner_circle.name, config);
  const std::vector<TrialJob> jobs{{id, config, folder.path() / id}};
  const std::atomic<bool> stop{false};
  RunContext context;
  context.stop = &stop;
  std::map<std::string, double> out;
  context.finished = [&](size_t, const Outcome& outcome) { out = outcome.values; };
  runner_circle.run(jobs, context);
  return out;
}

TEST(CircleRunner, LearnsTheStepItIsTaught) {
  TemporaryFolder folder;
  const Config small{{"points", int64_t{40}}, {"d", int64_t{16}}, {"skip", true}, {"mlp", true}};
  Config untrained = small, trained = small;
  untrained["epochs"] = int64_t{1};
  trained["epochs"] = int64_t{400};
  trained["lr"] = 0.01;
  const auto before = result(folder, untrained), after = result(folder, trained);
  EXPECT_LT(after.at("rmse"), 0.2 * before.at("rmse"));
  trained["step"] = int64_t{0};
  const auto start = result(folder, trained);
  EXPECT_NEAR(start.at("distance"), 2 * kCircleRadius, 1e-12);
  EXPECT_NEAR(start.at("radius"), kCircleRadius, 1e-12);
  EXPECT_EQ(start.at("rmse"), after.at("rmse"));  // another look at the same network
}

// Two points side by side: attention alone makes of their difference its cube, a skip a multiple of it.
// Beside that are terms of the fifth and of the second order in a distance of 1e-3.
TEST(CircleRunner, AttentionAloneBringsCloseNeighboursTogetherByTheCubicLaw) {
  TemporaryFolder folder;
  Config c{{"points", int64_t{40}}, {"d", int64_t{16}}, {"epochs", int64_t{200}}, {"lr", 0.01}};
  const auto alone = result(folder, c);
  EXPECT_NEAR(alone.at("contact_order"), 3, 0.05);
  EXPECT_LT(alone.at("lyapunov"), -3);
  c["skip"] = true;
  const auto skip = result(folder, c);
  EXPECT_NEAR(skip.at("contact_order"), 1, 0.05);
  EXPECT_GT(skip.at("lyapunov"), alone.at("lyapunov") + 2);
}

}  // namespace
}  // namespace rankscope
