#include "bench/bench.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "base/error.h"
#include "bench/attention_case.h"
#include "bench/machine.h"
#include "bench/plain_network.h"
#include "bench/training_case.h"
#include "bench/variants_case.h"
#include "train/constructions.h"
#include "train/data.h"
#include "train/layout.h"
#include "train/plain_forward.h"

namespace rankscope {
namespace {

constexpr StepShape kSmall{
    .layers = 2, .modules = 3, .heads = 2, .stack = 2, .d = 8, .tokens = 5, .batch = 6, .mlp = 12};

TEST(Bench, TheSlopeOfAPowerLawIsItsExponent) {
  const std::vector<double> x{1, 2, 4, 8, 32};
  std::vector<double> y;
  for (const double v : x) y.push_back(3 * std::pow(v, 1.7));
  EXPECT_NEAR(log_log_slope(x, y), 1.7, 1e-12);
}

TEST(Bench, TheLimitIsTheSlowerOfArithmeticAndTraffic) {
  Machine machine;
  machine.matrix_rate = 100;
  machine.copy_rate = 10;
  EXPECT_DOUBLE_EQ(limit_of(machine, 400, 10).seconds, 4);
  EXPECT_FALSE(limit_of(machine, 400, 10).by_bytes);
  EXPECT_DOUBLE_EQ(limit_of(machine, 400, 50).seconds, 5);
  EXPECT_TRUE(limit_of(machine, 400, 50).by_bytes);
}

// One multiply-add is 2 FLOPs, three passes a step: 2 layers of projections, scores and the MLP.
TEST(Bench, TheStepsArithmeticIsCountedByHand) {
  const double token = 2 * 8 * 24 * 4 + 2 * 2 * 5 * 24 + 2 * 2 * 8 * 12;
  EXPECT_DOUBLE_EQ(step_flops(trials_of(kSmall).front()), 3 * 2 * token * 5 * 6);
}

// In double precision, all from the parameters and the data of the first trial.
TEST(PlainNetwork, BothProgramsAreTheNetworkThatStudiesTrain) {
  const TrialSpec trial = trials_of(kSmall).front();
  const std::vector<float> start = starting_parameters(trial);
  const at::Tensor flat =
      at::tensor(at::ArrayRef<float>(start.data(), start.size()), at::kFloat).to(at::kDouble);
  TaskBatch batch = task_named("farthest").sample(trial.task, *cpu_draw(trial.data_seed, 0, 0, 6));
  batch.tokens = batch.tokens.to(at::kDouble);
  batch.target = batch.target.to(at::kDouble);

  const Layout layout(trial.network);
  const ParameterViews views(layout, flat, true, false);
  const at::Tensor loss = (forward({&trial.network}, views, batch) - batch.target).square().sum(-1).mean();
  at::Tensor gradient = at::zeros_like(flat);
  const auto parts = torch::autograd::grad({loss}, views.leaves());
  for (size_t i = 0; i < parts.size(); ++i)
    gradient.narrow(0, views.offsets()[i], parts[i].numel()).copy_(parts[i].flatten());

  for (const bool by_module : {false, true}) {
    const auto network = plain_network(trial.network, 5, flat.unsqueeze(0), by_module);
    const at::Tensor plain = network->loss(batch);
    const at::Tensor plain_gradient = network->flat(torch::autograd::grad({plain.sum()}, network->leaves()));
    EXPECT_NEAR(plain[0].item<double>(), loss.item<double>(), 1e-13) << by_module;
    EXPECT_LT((plain_gradient[0] - gradient).norm().item<double>(), 1e-12 * gradient.norm().item<double>())
        << by_module;
  }
}

TEST(PlainNetwork, AnotherArchitectureIsRefused) {
  TrialSpec trial = trials_of(kSmall).front();
  trial.network.blocks[0].branches[0].behind.kind = NormKind::layer;
  EXPECT_THROW(plain_network(trial.network, 5, at::zeros({1, Layout(trial.network).size()}), true), Error);
}

TEST(Bench, AStepIsVerifiedAndThenTimedThreeTimes) {
  Machine machine{.quick = true};
  const BenchRow row = measure_step(machine, kSmall);
  EXPECT_EQ(row.name, "L=2 W=3 heads=2 x2");
  EXPECT_EQ(row.fault, "");
  EXPECT_LE(row.error, 2 * row.plain_error + 1.2e-7);
  for (const double time : {row.ours, row.eager, row.best}) EXPECT_GT(time, 0);
}

TEST(Bench, AttentionOfEveryWidthIsVerifiedForthAndBack) {
  Machine machine{.quick = true};
  for (const bool backward : {false, true}) {
    const BenchRow row = measure_attention(machine, {.width = 8, .backward = backward});
    EXPECT_EQ(row.name, backward ? "attention r=8 back" : "attention r=8 forth");
    EXPECT_EQ(row.fault, "");
    for (const double time : {row.ours, row.eager, row.best}) EXPECT_GT(time, 0);
  }
}

TEST(Bench, AVariantIsVerifiedAndThenTimedBesideItsCompositionAndSoftmax) {
  const auto nobody = [](int64_t, int64_t, const std::string&) {};
  for (const auto& [form, backward, rows] :
       {std::tuple<const char*, bool, int64_t>{"delta", true, 64}, {"fastmax p=2", false, 17 * 18 / 2}}) {
    Machine machine{.quick = true};
    VariantCurve curve = measure_variant(machine, form, backward, nobody);
    EXPECT_EQ(curve.fault, "");
    EXPECT_LE(curve.error, 2 * curve.composed_error + 1.2e-7);
    EXPECT_EQ(curve.state_rows, rows);
    EXPECT_EQ(curve.tokens, (std::vector<int64_t>{256, 512}));
    set_limits(machine, curve);
    for (const auto& times : {curve.ours, curve.composed, curve.limit}) {
      ASSERT_EQ(times.size(), 2u);
      for (const double time : times) EXPECT_GT(time, 0);
    }
    EXPECT_EQ(curve.softmax.size(), 2u);                     // none where a call would take too long
    EXPECT_NEAR(curve.limit[1] / curve.limit[0], 2, 1e-12);  // linear in the tokens
  }
}

TEST(Bench, EveryRowHasItsLimitFromTheRatesOfThisRun) {
  const BenchResult result = run_bench({.threads = 1, .cases = {"r=64"}, .quick = true},
                                       [](int64_t, int64_t, const std::string&) {});
  ASSERT_EQ(result.rows.size(), 2u);
  for (const BenchRow& row : result.rows) EXPECT_GT(row.limit, 0) << row.name;
}

TEST(Bench, ACaseThatIsNotThereIsNamed) {
  EXPECT_THROW(run_bench({.cases = {"W=7"}}, [](int64_t, int64_t, const std::string&) {}), Error);
  EXPECT_THROW(run_bench({.precision = "fp8"}, [](int64_t, int64_t, const std::string&) {}), Error);
}

}  // namespace
}  // namespace rankscope
