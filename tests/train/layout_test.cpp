#include "train/layout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/train_support.h"

namespace rankscope {
namespace {

ModelSpec paper(int64_t layers, int64_t modules, int64_t heads) {
  return encoder({.d = 64,
                  .layers = layers,
                  .modules = modules,
                  .heads = heads,
                  .rank = 64 / heads,
                  .v_rank = 64 / heads,
                  .scale = 1 / std::sqrt(64.0 / double(heads)),
                  .mlp = 2048});
}

// L (W 16640 + 264258), whatever the rank; the output biases of the W modules, always equal, are one here.
TEST(Layout, HasTheParametersOfThePaper) {
  for (const int64_t heads : {1, 8, 64}) {
    EXPECT_EQ(Layout(paper(1, 1, heads)).size(), 16640 + 264258);
    EXPECT_EQ(Layout(paper(3, 8, heads)).size(), 3 * (8 * 16640 + 264258 - 7 * 64));
    EXPECT_EQ(Layout(paper(5, 64, heads)).size(), 5 * (64 * 16640 + 264258 - 63 * 64));
  }
}

// Per token and layer W (8 D^2 + 4 N D) + 4 D 2048; a run is three forward passes a sequence.
TEST(Layout, AnAlignedLayoutMovesParametersAndKeepsQueriesKeysAndValuesTogether) {
  const Layout plain(paper(2, 1, 8)), aligned(paper(2, 1, 8), 32);
  EXPECT_EQ(aligned.size() % 32, 0);
  for (size_t i = 0; i < plain.slots().size(); ++i) {
    const std::string& name = plain.slots()[i].parameter.name;
    ASSERT_EQ(aligned.slots()[i].parameter.name, name);
    if (name.ends_with("_K") || name.ends_with("_V"))
      EXPECT_EQ(aligned.slots()[i].offset - aligned.slots()[i - 1].offset,
                plain.slots()[i].offset - plain.slots()[i - 1].offset)
          << name;
    else
      EXPECT_EQ(aligned.slots()[i].offset % 32, 0) << name;
  }
}

TEST(Layout, CountsTheOperationsOfThePaper) {
  TrialSpec t;
  t.network = paper(3, 8, 4);
  t.task.n = 16;
  t.protocol = {.steps = 100000, .batch = 256};
  const double token = 8 * (8 * 64 * 64 + 4 * 16 * 64) + 4 * 64 * 2048;
  EXPECT_DOUBLE_EQ(training_flops(t), 3 * 3 * token * 256 * 16 * 1e5);
  EXPECT_NEAR(training_flops(t), 3.02e15, 0.005e15);  // its table
}

TEST(Layout, StartsInsideTheBoundsOfTorchsAttention) {
  const ModelSpec n = paper(2, 2, 8);
  const std::vector<float> p = initial_parameters(n, 5);
  const double bounds[] = {std::sqrt(6.0 / 256), 1 / 8.0, 1 / std::sqrt(2048.0)};
  const Layout layout(n);
  for (const Slot& slot : layout.slots()) {
    double largest = 0;
    for (int64_t i = 0; i < element_count(slot.parameter); ++i)
      largest = std::max(largest, std::abs(double(p[size_t(slot.offset + i)])));
    const std::string& name = slot.parameter.name;
    if (name.ends_with("W_Q") || name.ends_with("W_V")) {
      EXPECT_LE(largest, bounds[0]);
      EXPECT_GT(largest, 0.99 * bounds[0]);
    } else if (name.ends_with("W_O") || name.ends_with("W_in") || name.ends_with("b_in")) {
      EXPECT_LE(largest, bounds[1]);
      EXPECT_GT(largest, 0.97 * bounds[1]);
    } else if (name.ends_with("W_out")) {
      EXPECT_LE(largest, bounds[2]);
    } else if (name.ends_with("b_Q") || name.ends_with("b_O")) {
      EXPECT_EQ(largest, 0.0);
    } else if (name.ends_with(".w")) {
      EXPECT_EQ(largest, 1.0);
    }
  }
}

TEST(Layout, LayersStartAlikeOnlyWhenAsked) {
  ModelSpec n = paper(2, 1, 4);
  const auto layer = [&](int64_t l) {
    const std::vector<float> p = initial_parameters(n, 5);
    const Layout layout(n);
    for (const Slot& slot : layout.slots())
      if (slot.parameter.name == "blocks." + std::to_string(l) + ".attn.W_Q")
        return std::vector<float>(p.begin() + slot.offset, p.begin() + slot.offset + 64 * 64);
    return std::vector<float>();
  };
  EXPECT_NE(layer(0), layer(1));
  n.init.same_blocks = true;
  EXPECT_EQ(layer(0), layer(1));
}

TEST(Protocol, FollowsTheScheduleOfASet) {
  Protocol p{.steps = 700, .lr = 1.0, .warmup = 0, .schedule = Schedule::constant, .window = 10};
  EXPECT_EQ(learning_rate(p, 500), 1.0);
  p.schedule = Schedule::linear;
  EXPECT_DOUBLE_EQ(learning_rate(p, 350), 0.5);
  p.schedule = Schedule::epochs;
  EXPECT_EQ(learning_rate(p, 149), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(p, 150), 0.91);
  EXPECT_DOUBLE_EQ(learning_rate(p, 699), std::pow(0.91, 5));
}

TEST(Protocol, WarmsUpThenFollowsACosineToItsEnd) {
  const Protocol p{.steps = 1000, .lr = 0.1, .lr_end = 0.1, .warmup = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(p, 0), 0.001);
  EXPECT_DOUBLE_EQ(learning_rate(p, 99), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(p, 100), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(p, 550), 0.055);
  EXPECT_NEAR(learning_rate(p, 999), 0.01, 1e-6);
}

// e lr / (w - 1) in epoch e < w = 5, then a cosine to zero.
TEST(Protocol, TheReplayedScheduleChangesEveryHundredSteps) {
  const Protocol p{.steps = 10000, .lr = 0.01, .lr_end = 0.1, .replay = true};
  EXPECT_EQ(learning_rate(p, 99), 0.0);
  EXPECT_DOUBLE_EQ(learning_rate(p, 100), 0.0025);
  EXPECT_DOUBLE_EQ(learning_rate(p, 199), 0.0025);
  EXPECT_DOUBLE_EQ(learning_rate(p, 450), 0.01);
  EXPECT_LT(learning_rate(p, 9999), 1e-5);
  EXPECT_EQ(data_step(p, 12345), 45);
}

}  // namespace
}  // namespace rankscope
