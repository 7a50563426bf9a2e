// Which trials have a bound beside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/philox.h"
#include "studies/support/train_config.h"
#include "theory/certificate.h"

namespace rankscope {
namespace {

std::map<std::string, double> limits(const char* task, const char* data, int64_t queries,
                                     const std::string& model = "") {
  const std::string usual = queries == 0 ? "encoder" : "layer";
  return limits_of(trial_of(complete(train_keys(),
                                     {{"model", model.empty() ? usual : model},
                                      {"task", std::string(task)},
                                      {"data", std::string(data)},
                                      {"d", int64_t{8}},
                                      {"n", int64_t{4}},
                                      {"queries", queries},
                                      {"rank", int64_t{2}}},
                                     "test")));
}

TEST(Limits, OfAQueryOfItsOwnAreBoundAndFloorOfItsPointsForTheNearestAndTheFarthest) {
  LayerQuestion q{.d = 8, .rank = 2, .heads = 4, .n = 4};
  for (const char* data : {"ortho", "iid"}) {
    if (data == std::string("iid")) q.target = Neighbour::nearest_of_independent;
    const Certificate c = certify(q);
    for (const char* task : {"nearest", "farthest"})
      EXPECT_EQ(limits(task, data, 1),
                (std::map<std::string, double>{{"lower_bound", *c.lower_bound},
                                               {"no_selection_floor", c.no_selection_floor},
                                               {"plateau", *c.plateau}}))
          << task << " " << data;
  }
}

// Answers of a given weight on one's own point and on the sum of all: the best of those that a network can
// give is its floor.
TEST(Limits, TheFloorOfALayerWithoutASkipCannotTellItsOwnPointFromTheOthers) {
  constexpr int64_t d = 8, n = 4, draws = 40'000;
  const Philox words{.seed = 3, .stream = 11};
  double own = 0, sum = 0;  // means of <x_i, f> and <sum, f>, f the farthest point
  uint64_t index = 0;
  std::vector<std::vector<double>> x(n, std::vector<double>(d));
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  for (int64_t draw = 0; draw < draws; ++draw) {
    for (auto& point : x) {
      for (double& v : point) v = words.normal(index++);
      const double length = std::sqrt(product(point, point));
      for (double& v : point) v /= length;
    }
    const auto& f = *std::min_element(x.begin() + 1, x.end(), [&](const auto& a, const auto& b) {
      return product(a, x[0]) < product(b, x[0]);
    });
    own += product(x[0], f) / draws;
    for (const auto& point : x) sum += product(point, f) / draws;
  }
  // The sum has a mean square of n; one's own point and the others are orthogonal in the mean.
  const double others = sum - own, layer = 1 - sum * sum / n,
               encoder = 1 - own * own - others * others / (n - 1);
  const double scatter = 4 / std::sqrt(draws);  // four standard errors: products scatter by less than 1
  EXPECT_NEAR(limits("farthest", "iid", 0, "layer").at("no_selection_floor"), layer, scatter);
  EXPECT_NEAR(limits("farthest", "iid", 0, "encoder").at("no_selection_floor"), encoder, scatter);
  EXPECT_GT(layer, encoder + 2 * scatter);
}

TEST(Limits, OfSelfAttentionAndOfOtherLawsHaveNoBound) {
  // The one-layer model without queries asks with its own points: the nearest one is the point itself.
  EXPECT_TRUE(limits("nearest", "ortho", 0, "layer").empty());
  EXPECT_EQ(limits("farthest", "iid", 0).count("lower_bound"), 0u);
  EXPECT_EQ(limits("farthest", "iid", 0).count("no_selection_floor"), 1u);
  EXPECT_TRUE(limits("nearest", "doubled", 1).empty());
}

}  // namespace
}  // namespace rankscope
