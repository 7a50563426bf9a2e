#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "support/rounding.h"
#include "tasks/task.h"
#include "train/data.h"

namespace rankscope {
namespace {

constexpr double kEpsilon = 2 * test::kFloatRounding;

TaskBatch draw(const TaskSpec& spec, int64_t count, uint64_t seed = 7, int64_t first = 0) {
  return task_named(spec.name).sample(spec, *cpu_draw(seed, 3, first, count));
}

TEST(Tasks, PointsAreOnTheSphere) {
  const TaskBatch b = draw({.name = "farthest", .d = 24, .n = 5}, 50);
  EXPECT_LT((at::linalg_vector_norm(b.tokens, 2, {-1}) - 1).abs().max().item<double>(), 4 * kEpsilon);
}

TEST(Tasks, TheFarthestPointHasTheSmallestInnerProduct) {
  const TaskBatch b = draw({.name = "farthest", .d = 8, .n = 6}, 20);
  for (int64_t s = 0; s < 20; ++s)
    for (int64_t i = 0; i < 6; ++i) {
      const at::Tensor x = b.tokens[s];
      int64_t best = 0;
      for (int64_t j = 1; j < 6; ++j)
        if (x[j].dot(x[i]).item<double>() < x[best].dot(x[i]).item<double>()) best = j;
      EXPECT_TRUE(b.target[s][i].equal(x[best]));
    }
}

TEST(Tasks, TheNearestPointIsTheNearestToItsQuery) {
  const TaskBatch b = draw({.name = "nearest", .data = "ortho", .d = 8, .n = 3, .queries = 2}, 20);
  for (int64_t s = 0; s < 20; ++s)
    for (int64_t q = 0; q < 2; ++q) {
      const at::Tensor distances = (b.tokens[s] - b.queries[s][q]).square().sum(-1);
      EXPECT_TRUE(b.target[s][q].equal(b.tokens[s][distances.argmin().item<int64_t>()]));
    }
}

TEST(Tasks, OrthonormalPointsAreOrthonormalUpToAsManyAsDimensions) {
  const TaskBatch b = draw({.name = "nearest", .data = "ortho", .d = 16, .n = 16, .queries = 1}, 30);
  const at::Tensor gram = at::matmul(b.tokens, b.tokens.transpose(1, 2));
  EXPECT_LT((gram - at::eye(16)).abs().max().item<double>(), 16 * kEpsilon);
}

TEST(Tasks, ManyOrthonormalPointsAreTheSameAloneAndInABatch) {
  const TaskSpec spec{.name = "nearest", .data = "ortho", .d = 16, .n = 16, .queries = 1};
  const TaskBatch all = draw(spec, 40);
  for (const int64_t at : {0, 17, 39})
    EXPECT_TRUE(draw(spec, 1, 7, at).tokens[0].equal(all.tokens[at])) << at;
}

// A raw QR leaves the sign of its first coordinate fixed; under Haar's law each sign is a coin.
TEST(Tasks, OrthonormalPointsHaveNoPreferredSign) {
  const int64_t count = 4000;
  const TaskBatch b = draw({.name = "nearest", .data = "ortho", .d = 4, .n = 2, .queries = 1}, count);
  const double positive = (b.tokens.select(1, 0).select(1, 0) > 0).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(positive, 0.5, 4 * 0.5 / std::sqrt(double(count)));
  // E w w^T = I / d, within four standard errors of an entry
  const at::Tensor w = ((b.tokens.select(1, 0) - b.tokens.select(1, 1)) / std::sqrt(2.0)).to(at::kDouble);
  const at::Tensor second = at::mm(w.t(), w) / double(count);
  EXPECT_LT((second - at::eye(4, at::kDouble) / 4).abs().max().item<double>(),
            4 * 0.35 / std::sqrt(double(count)));
}

TEST(Tasks, DoubledPointsComeWithTheirNegatives) {
  const TaskBatch b = draw({.name = "farthest", .data = "doubled", .d = 8, .n = 3}, 4);
  EXPECT_EQ(b.tokens.size(1), 6);
  EXPECT_TRUE(b.tokens.narrow(1, 3, 3).equal(-b.tokens.narrow(1, 0, 3)));
  EXPECT_TRUE(b.target.equal(-b.tokens));  // the farthest from x is -x
}

TEST(Tasks, ASequenceIsTheSameInEveryBatch) {
  for (const Task* task : tasks()) {
    TaskSpec spec{
        .name = std::string(task->name), .d = 6, .n = 2, .queries = task->queries == "separate" ? 3 : 0};
    const TaskBatch all = draw(spec, 10), part = draw(spec, 4, 7, 5);
    EXPECT_TRUE(part.tokens.equal(all.tokens.narrow(0, 5, 4))) << task->name;
    EXPECT_TRUE(part.target.equal(all.target.narrow(0, 5, 4))) << task->name;
    EXPECT_FALSE(draw(spec, 10, 8).tokens.equal(all.tokens)) << task->name;
  }
}

TEST(Tasks, TargetsHaveTheSizesTheTaskPromises) {
  for (const Task* task : tasks()) {
    TaskSpec spec{
        .name = std::string(task->name), .d = 6, .n = 2, .queries = task->queries == "separate" ? 3 : 0};
    const TaskBatch b = draw(spec, 5);
    EXPECT_EQ(b.target.sizes().vec(),
              (std::vector<int64_t>{5, task->answers(spec), task->answer_width(spec)}));
    EXPECT_EQ(b.tokens.sizes().vec(), (std::vector<int64_t>{5, token_count(spec), task->token_width(spec)}));
  }
}

TEST(Tasks, TheBiasFavoursTheFirstPoint) {
  const TaskBatch b = draw({.name = "biased", .data = "ortho", .d = 8, .n = 2, .queries = 4}, 200);
  const at::Tensor scores = at::matmul(b.queries, b.tokens.transpose(1, 2));
  const at::Tensor first = (scores.select(2, 0) + 1 >= scores.select(2, 1)).unsqueeze(-1);
  const at::Tensor expected = at::where(first, b.tokens.narrow(1, 0, 1), b.tokens.narrow(1, 1, 1));
  EXPECT_TRUE(b.target.equal(expected));
}

// The task jumps from value to value; the definition sums 2 d^2 + 1 signs.
TEST(Tasks, TheSquareWaveIsTheAlternatingSumOfBiasedNeighbours) {
  for (const int64_t d : {3, 4}) {
    const TaskBatch b = draw({.name = "square-wave", .data = "ortho", .d = d, .n = 2, .queries = 3}, 100);
    const auto m = d * d;
    const double delta = 4 * std::sqrt(2.0) / static_cast<double>(m);
    for (int64_t s = 0; s < 100; ++s)
      for (int64_t q = 0; q < 3; ++q) {
        const at::Tensor x1 = b.tokens[s][0].to(at::kDouble), x2 = b.tokens[s][1].to(at::kDouble);
        const double t = (b.queries[s][q] * (b.tokens[s][0] - b.tokens[s][1])).sum().item<double>();
        at::Tensor sum = at::zeros({d}, at::kDouble);
        for (int64_t i = -m; i <= m; ++i)
          sum += ((i % 2 == 0 ? 1.0 : -1.0)) * (t > static_cast<double>(i) * delta ? x1 : x2);
        EXPECT_LT((b.target[s][q].to(at::kDouble) - sum).abs().max().item<double>(), 4 * kEpsilon);
      }
  }
}

TEST(Tasks, RegressionHidesTheAnswerItAsksFor) {
  const TaskBatch b = draw({.name = "regression", .d = 5, .n = 12}, 40);
  EXPECT_EQ(b.tokens.select(1, 11).select(1, 5).abs().max().item<double>(), 0.0);
  // w solves the other eleven equations, so it must give the target
  for (int64_t s = 0; s < 40; ++s) {
    const at::Tensor x = b.tokens[s].narrow(1, 0, 5).to(at::kDouble),
                     y = b.tokens[s].narrow(1, 5, 1).to(at::kDouble);
    const at::Tensor w = std::get<0>(at::linalg_lstsq(x.narrow(0, 0, 11), y.narrow(0, 0, 11)));
    // Every y is a float32 sum of five products; what that moves w by is at most 1 / sigma_min of it.
    const double sigma = std::get<1>(at::linalg_svd(x.narrow(0, 0, 11), false)).min().item<double>();
    const double moved = y.norm().item<double>() / sigma * x[11].norm().item<double>();
    EXPECT_NEAR(at::mm(x.narrow(0, 11, 1), w).item<double>(), b.target[s].item<double>(),
                test::sum_error(5) * (moved + std::abs(b.target[s].item<double>())));
  }
}

TEST(Tasks, MoreOrthonormalPointsThanDimensionsAreRefused) {
  const TaskSpec spec{.name = "nearest", .data = "ortho", .d = 4, .n = 5, .queries = 1};
  try {
    task_named("nearest").check(spec);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "there are no 5 orthonormal points in 4 dimensions");
  }
}

TEST(Tasks, FarthestOfEqualDistancesIsRefused) {
  const Task& task = task_named("farthest");
  const auto refused = [&](const TaskSpec& spec) {
    try {
      task.check(spec);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  EXPECT_EQ(refused({.name = "farthest", .data = "ortho", .d = 8, .n = 3}),
            "orthonormal points are equally far from each other: none is the farthest");
  EXPECT_EQ(refused({.name = "farthest", .data = "iid", .d = 8, .n = 1}), "one point has no farthest other");
  // Of two points it is the other one, and so is a point's negative; a query of its own tells all apart.
  EXPECT_EQ(refused({.name = "farthest", .data = "ortho", .d = 8, .n = 2}), "");
  EXPECT_EQ(refused({.name = "farthest", .data = "doubled", .d = 8, .n = 1}), "");
  EXPECT_EQ(refused({.name = "farthest", .data = "ortho", .d = 8, .n = 3, .queries = 1}), "");
}

TEST(Tasks, AnUnknownTaskNamesTheNearest) {
  try {
    task_named("farthst");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.advice().find("farthest"), std::string::npos);
  }
}

// The query ends the sequence and is the only token with a mark.
TEST(Tasks, ALookupAsksAtItsLastTokenForTheNearestPoint) {
  const TaskBatch b = draw({.name = "lookup", .d = 4, .n = 6}, 20);
  ASSERT_EQ(b.tokens.sizes(), (std::vector<int64_t>{20, 6, 5}));
  ASSERT_EQ(b.target.sizes(), (std::vector<int64_t>{20, 1, 4}));
  EXPECT_EQ(b.tokens.select(2, 4).sum(0).select(0, 5).item<double>(), 20);
  EXPECT_EQ(b.tokens.select(2, 4).sum().item<double>(), 20);
  for (int64_t s = 0; s < 20; ++s) {
    const at::Tensor points = b.tokens[s].narrow(0, 0, 5).narrow(1, 0, 4),
                     query = b.tokens[s][5].narrow(0, 0, 4);
    EXPECT_TRUE(b.target[s][0].equal(points[at::mv(points, query).argmax().item<int64_t>()]));
  }
  EXPECT_THROW(task_named("lookup").check({.name = "lookup", .data = "ortho", .d = 4, .n = 3}), Error);
}

}  // namespace
}  // namespace rankscope
