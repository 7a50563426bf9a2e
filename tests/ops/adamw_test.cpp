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
  apply_adamw(kRule, at::tensor({2, 0, 3}, at::kLong), rates, at::tensor({1, 0, 1}, at::kInt), gradient,
              stack.parameter, stack.m, stack.v);
  EXPECT_TRUE(at::equal(stack.parameter[1], before.parameter[1]));
  EXPECT_TRUE(at::equal(stack.m[1], before.m[1]));
  for (const auto& [trial, step, lr] : {std::tuple{0, 3, 0.5f}, {2, 4, 0.25f}}) {
    State alone = copy(before);
    apply_adamw(kRule, lr, step, gradient[trial], alone.parameter[trial], alone.m[trial], alone.v[trial]);
    EXPECT_TRUE(at::allclose(stack.parameter[trial], alone.parameter[trial], 2e-6, 2e-6)) << trial;
    EXPECT_FALSE(at::equal(stack.parameter[trial], before.parameter[trial]));
  }
}

}  // namespace
}  // namespace rankscope
