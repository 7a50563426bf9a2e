// What variants do to the output, and how layers, lenses and thresholds are chosen.
#include "pass/output.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "pass/running_softmax.h"
#include "scan/fixture_request.h"
#include "scan/pass_run.h"

namespace rankscope {
namespace {

using test::tiny_spec;

TEST(Scan, TheThresholdOfASinkIsTheOneSinkRatioCountsBy) {
  for (const auto& [threshold, ratio] : {std::pair{-1.0, 1.0}, {1.0, 0.0}}) {  // above any head, above none
    ScanRequest request = test::random_tokens_through("gpt2", 3, 8);
    request.lenses = {"sinks"};
    request.baseline = request.model;
    request.thresholds.set("sink", threshold);
    const ScanResult result = scan(request, {});
    for (const char* variant : {"full", "baseline"}) {
      const Row* row = result.table.find(variant, "sink_ratio", 1);
      ASSERT_NE(row, nullptr) << variant;
      EXPECT_EQ(row->value, ratio) << variant;
    }
  }
}

TEST(Output, KlIsThatOfTheDistributions) {
  const ModelSpec spec = tiny_spec();
  const auto source = random_source(spec, 1, "float64", "cpu");
  const PassPlan plan = plan_of(spec, *source, {"mlp"});
  const PassOutcome r = run(plan);
  const at::Tensor W = source->row_range("unembed.W_U", 0, 50);
  double sum = 0;
  for (size_t b = 0; b < plan.inputs[0].size(); ++b) {
    const Batch& batch = plan.inputs[0][b];
    const at::Tensor p = at::log_softmax((*r.states[0].x)[b].matmul(W.t()), -1);
    const at::Tensor q = at::log_softmax((*r.states[1].x)[b].matmul(W.t()), -1);
    const at::Tensor kl = (p.exp() * (p - q)).sum(-1);
    for (int64_t s = 0; s < batch.count(); ++s)
      sum += kl.narrow(0, batch.offsets[static_cast<size_t>(s)], batch.length(s)).mean().item<double>();
  }
  const Row* row = r.table.find("-mlp", "output_kl", -1);
  ASSERT_NE(row, nullptr);
  EXPECT_NEAR(row->value, sum / 5, 1e-12 * sum);
  EXPECT_GT(row->value, 0);
}

TEST(RunningSoftmax, OfTilesIsThatOfTheWhole) {
  at::manual_seed(1);
  const at::Tensor a = 5 * at::randn({3, 100}, at::kDouble), b = 5 * at::randn({3, 100}, at::kDouble);
  const RunningSoftmax p = RunningSoftmax::of(3, a), q = RunningSoftmax::of(3, a);
  const at::Tensor weighted = at::zeros({3}, at::kDouble);
  for (int64_t first = 0; first < 100; first += 30) {
    const auto tile = [&](const at::Tensor& t) {
      return t.narrow(1, first, std::min<int64_t>(30, 100 - first));
    };
    RunningSoftmax::Tile of_b = q.add(tile(b));
    add_difference(weighted, p.add(tile(a)), of_b);
  }
  EXPECT_LT((p.log_z() - a.logsumexp(1)).abs().max().item<double>(), 1e-13);
  const at::Tensor log_p = at::log_softmax(a, 1), log_q = at::log_softmax(b, 1);
  EXPECT_LT((kl_of(p, q, weighted) - (log_p.exp() * (log_p - log_q)).sum(1)).abs().max().item<double>(),
            1e-12);
}

// The sum of so many floats is off by more in float32: 1e-7 of it.
TEST(RunningSoftmax, SumsFloatsInDouble) {
  at::Tensor x = at::full({1, 4096}, -1.0, at::kFloat);
  x[0][0] = 0.0;
  const RunningSoftmax p = RunningSoftmax::of(1, x), q = RunningSoftmax::of(1, x);
  const RunningSoftmax::Tile a = p.add(x);
  const double small = a.p[0][1].item<double>(), sum = 1 + 4095 * small;
  EXPECT_NEAR(p.sum.item<double>(), sum, 1e-12 * sum);
  const at::Tensor weighted = at::zeros({1}, at::kDouble);
  RunningSoftmax::Tile b = q.add(x - 0.7f);
  const double apart = (x[0][1] - b.x[0][1]).item<double>(), first = (x[0][0] - b.x[0][0]).item<double>();
  add_difference(weighted, a, b);
  EXPECT_NEAR(weighted.item<double>(), first + 4095.0 * static_cast<float>(apart * small), 1e-12 * sum);
}

TEST(Output, IsTheRelativeErrorOfTheHiddenStateWithoutAHead) {
  ModelSpec spec = tiny_spec();
  spec.output = {};
  const auto source = random_source(spec, 1, "float64", "cpu");
  const PassOutcome r = run(plan_of(spec, *source, {"mlp"}));
  const Row* row = r.table.find("-mlp", "output_error", -1);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->site.str(), "blocks.2.hook_resid_post");
  EXPECT_GT(row->value, 0.01);
}

TEST(Layers, AreParsedAsRangesAndRefusedByName) {
  EXPECT_EQ(parse_layers("0-1,3", 4), (std::vector<bool>{true, true, false, true}));
  for (const char* bad : {"a", "1-", "3-1", "1,,2", "-1", "1;2"})
    EXPECT_THROW(parse_layers(bad, 4), Error) << bad;
  EXPECT_THROW(parse_layers("4", 4), Error);
}

TEST(Lenses, AreChosenByNameOrTheNearestIsNamed) {
  EXPECT_EQ(choose_lenses({"eigen"}).front()->name, "eigen");
  for (const Lens* lens : choose_lenses({})) EXPECT_FALSE(lens->on_request);
  EXPECT_EQ(choose_lenses({"residual"}).front()->name, "residual");
  try {
    choose_lenses({"residul"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.advice().rfind("residual", 0), 0u) << e.advice();
  }
}

}  // namespace
}  // namespace rankscope
