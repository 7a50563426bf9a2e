// Layers that read with the patterns of the layer before.
#include "importance/sharing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/checkpoint.h"
#include "model/random_source.h"
#include "support/source_tree.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

using test::tiny_spec;

// Blocks alike, of which the first adds nothing to the stream: the second sees what it saw, and its patterns
// are the same. Keys and values are grouped, the texts of three lengths.
ModelSpec twice_the_same(bool same_weights) {
  ModelSpec s = tiny_spec(NormPlace::pre, 3);
  s.init.same_blocks = same_weights;
  for (BlockSpec& b : s.blocks) b.attention().kv_heads = 2;
  for (BranchSpec& branch : s.blocks[0].branches) branch.scale = 0;
  return s;
}

struct Shared {
  double largest = 0;  // change of a sample's loss
};
Shared shared(const ModelSpec& spec, const std::set<int64_t>& layers) {
  const auto source = random_source(spec, 1, "float64", "cpu");
  const Questions questions = questions_for(spec, test::random_samples({9, 5, 9, 12}, 50), {}, 3);
  const ProgressCallback quiet;
  Evaluator evaluator({.source = *source,
                       .questions = questions,
                       .batch_size = 3,
                       .seed = 0,
                       .device = "cpu",
                       .parts = false,
                       .group_bytes = 0,
                       .progress = quiet});
  const Judged judged = judge_shared(evaluator, layers);
  Shared out;
  for (size_t s = 0; s < judged.loss.size(); ++s)
    out.largest = std::max(out.largest, std::fabs(judged.loss[s] - evaluator.full().loss[s]));
  return out;
}

TEST(SharedPatterns, CostNothingWhereBothLayersLookAlike) {
  // float64 through three blocks of order one.
  EXPECT_LT(shared(twice_the_same(true), {1}).largest, 1e-11);
  EXPECT_GT(shared(twice_the_same(false), {1}).largest, 1e-3);
}

TEST(SharedPatterns, GoOnThroughLayersThatShareOneBehindAnother) {
  ModelSpec s = twice_the_same(true);
  for (BranchSpec& branch : s.blocks[1].branches) branch.scale = 0;
  EXPECT_LT(shared(s, {1, 2}).largest, 1e-11);
  EXPECT_EQ(shared(s, {}).largest, 0);
}

TEST(SharedPatterns, SaveTheMapsOfQueriesAndKeys) {
  const ModelSpec s = tiny_spec(NormPlace::pre, 3);
  EXPECT_EQ(parameters_shared(s, {1}), 2 * (24 * 24 + 24));  // with their biases
  EXPECT_EQ(parameters_shared(s, {1, 2}), 2 * parameters_shared(s, {1}));
}

TEST(SharedPatterns, AreForLayersThatLookAtTheSameKeys) {
  ModelSpec s = tiny_spec(NormPlace::pre, 4);
  EXPECT_EQ(layers_that_can_share(s), (std::vector<int64_t>{1, 2, 3}));
  s.blocks[1].attention().window = 3;
  EXPECT_EQ(layers_that_can_share(s), (std::vector<int64_t>{3}));
  s.blocks[3].attention_branch()->part.name = "gated_attention";
  EXPECT_TRUE(layers_that_can_share(s).empty());
  const auto of = [](const char* name) {
    return layers_that_can_share(Checkpoint(test::fixtures() / "models" / name).spec());
  };
  EXPECT_EQ(of("gpt2"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(of("llama"), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(of("gemma2").empty());  // windows on every other layer
}

}  // namespace
}  // namespace rankscope
