#include "ops/adamw.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace rankscope {
namespace {

struct State {
  at::Tensor parameter, m, v;
};

State start(int64_t trials, int64_t count) {
  at::manual_seed(5);
  return {at::randn({trials, count}), at::randn({trials, count}), at::randn({trials, count}).square()};
}

State copy(const State& s) { return {s.parameter.clone(), s.m.clone(), s.v.clone()}; }

const AdamW kRule{0.9f, 0.99f, 1e-8f, 0.1f};

// Kernel and composition each make about ten roundings of the terms of the update, which are of order one
// here (a step is lr times a few).
TEST(ApplyAdamW, KernelAndCompositionAgreeToRounding) {
  const State before = start(1, 1000);
  const at::Tensor gradient = at::randn({1, 1000});
  for (const int64_t step : {int64_t{1}, int64_t{2}, int64_t{5000}}) {
    State fused = copy(before), plain = copy(before);
    adamw_update(kRule, 0.01f, step, 1000, gradient.data_ptr<float>(), fused.parameter.data_ptr<float>(),
                 fused.m.data_ptr<float>(), fused.v.data_ptr<float>());
    adamw_reference(kRule, at::full({1, 1}, step, at::kLong), at::full({1, 1}, 0.01), at::ones({1}, at::kInt),
                    gradient, plain.parameter, plain.m, plain.v);
    const double rounding = 10 * std::numeric_limits<float>::epsilon();
    EXPECT_LT(((fused.parameter - plain.parameter) / (1 + before.parameter.abs())).abs().max().item<double>(),
              rounding);
    EXPECT_LT(((fused.m - plain.m) / (1 + before.m.abs())).abs().max().item<double>(), rounding);
    EXPECT_LT(((fused.v - plain.v) / (1 + before.v)).abs().max().item<double>(), rounding);
  }
}

TEST(ApplyAdamW, AStackTakesEachTrialsOwnStepAndRateAndLeavesTheDroppedAlone) {
  const State before = start(3, 64);
  State stack = copy(before);
  const at::Tensor gradient = at::randn({3, 64});
  at::Tensor rates = at::zeros({3, 4});
  rates[0][2] = 0.5;
  rates[2][3] = 0.25;
  apply_adamw(kRule, at::tensor({2, 0, 3}, at::kLong), rates, at::tensor({1, 0, 1}, at::kInt), {gradient},
              {0}, stack.parameter, stack.m, stack.v);
  EXPECT_TRUE(at::equal(stack.parameter[1], before.parameter[1]));
  EXPECT_TRUE(at::equal(stack.m[1], before.m[1]));
  for (const auto& [trial, step, lr] : {std::tuple{0, 3, 0.5f}, {2, 4, 0.25f}}) {
    State alone = copy(before);
    apply_adamw(kRule, lr, step, gradient[trial], alone.parameter[trial], alone.m[trial], alone.v[trial]);
    EXPECT_TRUE(at::allclose(stack.parameter[trial], alone.parameter[trial], 2e-6, 2e-6)) << trial;
    EXPECT_FALSE(at::equal(stack.parameter[trial], before.parameter[trial]));
  }
}

// As autograd leaves them: dense, columns of something wider, a column of it, turned, spread, four dimensions
// that come down to two, four that do not, and empty.
std::vector<at::Tensor> scattered(int64_t trials) {
  const at::Tensor both = at::randn({trials, 6, 12});
  return {at::randn({trials, 5}),
          both.narrow(2, 0, 8),
          both.select(2, 8),
          at::randn({trials, 7, 3}).transpose(1, 2),
          at::randn({trials, 1}).expand({trials, 9}),
          at::randn({trials, 4, 6, 5}).narrow(3, 0, 4),
          at::randn({trials, 4, 6, 5}).narrow(2, 1, 3).narrow(3, 0, 4),
          at::randn({trials, 0, 3})};
}

TEST(ApplyAdamW, ScatteredGradientsMoveTheirOwnParametersAndNothingElse) {
  const int64_t trials = 3, gap = 2;
  at::manual_seed(6);
  const std::vector<at::Tensor> gradients = scattered(trials);
  std::vector<int64_t> offsets;
  int64_t size = 0;
  for (const at::Tensor& g : gradients) {
    offsets.push_back(size + gap);
    size = offsets.back() + g.numel() / trials;
  }
  const State before = start(trials, size);
  const State after = copy(before);
  const at::Tensor steps = at::tensor({2, 0, 3}, at::kLong), alive = at::ones({trials}, at::kInt);
  const at::Tensor rates = at::rand({trials, 4});
  apply_adamw(kRule, steps, rates, alive, gradients, offsets, after.parameter, after.m, after.v);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor dense = gradients[i].flatten(1).contiguous();
    const auto part = [&](const at::Tensor& x) { return x.narrow(1, offsets[i], dense.size(1)); };
    const State alone{part(before.parameter).clone(), part(before.m).clone(), part(before.v).clone()};
    apply_adamw(kRule, steps, rates, alive, {dense}, {0}, alone.parameter, alone.m, alone.v);
    EXPECT_TRUE(at::equal(part(after.parameter), alone.parameter)) << i;
    EXPECT_TRUE(at::equal(part(after.m), alone.m)) << i;
    EXPECT_TRUE(at::equal(part(after.v), alone.v)) << i;
    EXPECT_EQ(at::equal(part(after.parameter), part(before.parameter)), dense.numel() == 0) << i;
    const auto between = [&](const at::Tensor& x) { return x.narrow(1, offsets[i] - gap, gap); };
    EXPECT_TRUE(at::equal(between(after.parameter), between(before.parameter))) << i;
    EXPECT_TRUE(at::equal(between(after.v), between(before.v))) << i;
  }
}

TEST(ApplyAdamW, ASegmentFindsEveryElementOfItsGradient) {
  at::manual_seed(7);
  const std::vector<at::Tensor> gradients = scattered(2);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto s = adamw_segment(gradients[i], 64);
    ASSERT_EQ(s.has_value(), i != 6) << i;
    if (!s) continue;
    const at::Tensor flat = gradients[i].flatten(1);
    EXPECT_EQ(s->offset, 64) << i;
    ASSERT_EQ(s->rows * s->columns, flat.size(1)) << i;
    for (int64_t t = 0; t < 2; ++t)
      for (int64_t k = 0; k < flat.size(1); ++k)
        EXPECT_EQ(s->gradient[t * s->trial_stride + k / s->columns * s->row_stride +
                              k % s->columns * s->column_stride],
                  flat[t][k].item<float>())
            << i << " " << t << " " << k;
  }
  // Rows that touch are one long row: what is read four floats at a time need not be so wide.
  EXPECT_EQ(adamw_segment(at::randn({2, 4, 6, 5}), 0)->rows, 1);
}

TEST(ApplyAdamW, ATrialThatHasNoRateLeftStays) {
  const State before = start(3, 16);
  State stack = copy(before);
  apply_adamw(kRule, at::tensor({3, 4, -1}, at::kLong), at::full({3, 4}, 0.1), at::ones({3}, at::kInt),
              {at::randn({3, 16})}, {0}, stack.parameter, stack.m, stack.v);
  for (const int64_t trial : {0, 1, 2}) {
    EXPECT_EQ(at::equal(stack.parameter[trial], before.parameter[trial]), trial > 0) << trial;
    EXPECT_EQ(at::equal(stack.v[trial], before.v[trial]), trial > 0) << trial;
  }
}

}  // namespace
}  // namespace rankscope
