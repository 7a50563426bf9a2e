#include "ops/pattern.h"

#include <cmath>

#include "ops/ops_support.h"

namespace rankscope {
namespace {

// A float32 sum of n terms is off by at most n roundings of its value, which a logarithm's own one joins.
double tolerance(int64_t terms, double value) { return 0x1p-24 * static_cast<double>(terms + 2) * value; }

TEST(PatternStatistics, OfUniformAttentionAreTheLogarithmAndAnEqualShare) {
  for (const at::Device device : devices()) {
    const PatternStatistics s = pattern_statistics(at::full({2, 3, 5, 8}, 0.125, device));
    EXPECT_EQ(s.entropy.sizes(), at::IntArrayRef({2, 3, 5}));
    EXPECT_EQ(s.received.sizes(), at::IntArrayRef({2, 3, 8}));
    EXPECT_LE(largest(s.entropy - std::log(8.0)), tolerance(8, std::log(8.0)));
    EXPECT_EQ(largest(s.received - 5 * 0.125), 0);
  }
}

TEST(PatternStatistics, OfOneKeyForEachQueryAreNothingAndAWhole) {
  for (const at::Device device : devices()) {
    const PatternStatistics s = pattern_statistics(at::eye(7, device));
    EXPECT_EQ(largest(s.entropy), 0);
    EXPECT_EQ(largest(s.received - 1), 0);
  }
}

TEST(PatternStatistics, AreThePlainSumsOverRandomShapes) {
  at::manual_seed(1);
  const std::vector<std::vector<int64_t>> shapes{{1, 1}, {4, 9, 17}, {2, 3, 33, 5}, {0, 4, 4}};
  for (const at::Device device : devices())
    for (const std::vector<int64_t>& shape : shapes)
      for (const bool turned : {false, true}) {
        at::Tensor p = at::softmax(normals(shape) * 3, -1).tril();
        if (turned) p = p.transpose(-1, -2);  // strides do not matter
        const PatternStatistics ours = pattern_statistics(p.to(device)),
                                exact = pattern_statistics_reference(p.to(at::kDouble));
        ASSERT_EQ(ours.entropy.sizes(), exact.entropy.sizes());
        ASSERT_EQ(ours.received.sizes(), exact.received.sizes());
        EXPECT_LE(distance(ours.entropy, exact.entropy), tolerance(p.size(-1), largest(exact.entropy)));
        EXPECT_LE(distance(ours.received, exact.received), tolerance(p.size(-2), largest(exact.received)));
      }
}

TEST(PatternStatistics, HaveTheGradientOfADifference) {
  at::manual_seed(2);
  const at::Tensor p = at::softmax(normals({3, 5, 6}), -1);
  expect_derivative([](const auto& in) { return pattern_statistics(in[0]).entropy; }, {p});
  expect_derivative([](const auto& in) { return pattern_statistics(in[0]).received; }, {p});
}

TEST(PatternStatistics, GiveMaskedEntriesNoGradientOfTheEntropy) {
  const at::Tensor p = at::full({4, 4}, 0.25).tril().requires_grad_(true);
  const at::Tensor slope = torch::autograd::grad({pattern_statistics(p).entropy.sum()}, {p})[0];
  EXPECT_EQ(largest(slope.triu(1)), 0);
  EXPECT_NEAR(slope[3][0].item<double>(), std::log(4.0) - 1, tolerance(1, 1));
}

}  // namespace
}  // namespace rankscope
