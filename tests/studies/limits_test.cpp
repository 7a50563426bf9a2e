// Which trials have a bound beside them.
#include <gtest/gtest.h>

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

TEST(Limits, OfSelfAttentionAndOfOtherLawsHaveNoBound) {
  // The one-layer model without queries asks with its own points: the nearest one is the point itself.
  EXPECT_TRUE(limits("nearest", "ortho", 0, "layer").empty());
  EXPECT_EQ(limits("farthest", "iid", 0).count("lower_bound"), 0u);
  EXPECT_EQ(limits("farthest", "iid", 0).count("no_selection_floor"), 1u);
  EXPECT_TRUE(limits("nearest", "doubled", 1).empty());
}

}  // namespace
}  // namespace rankscope
