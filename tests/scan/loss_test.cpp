// The loss that stands in front of every scan: known answers, properties, and the full table as a reference.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "checkpoint/load.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "pass/readout.h"
#include "scan/fixture_request.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::random_tokens_through;
using test::tiny_spec;

TEST(Loss, ACausalModelIsAskedForEveryTokenButTheFirst) {
  const ModelSpec spec = tiny_spec(NormPlace::pre);
  const std::vector<Sample> samples = random_samples({5, 1, 3}, 50);
  const Questions q = questions_for(spec, samples, {}, 0);
  EXPECT_EQ(q.kind, LossKind::next_token);
  EXPECT_EQ(q.answers.places[0], (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(q.answers.places[1].empty());
  EXPECT_EQ(q.answers.ids[2], std::vector<int64_t>(samples[2].ids.begin() + 1, samples[2].ids.end()));
  EXPECT_EQ(q.samples[0].ids, samples[0].ids);
}

TEST(Loss, AMaskedModelIsAskedForASeededShareOfItsContent) {
  const ModelSpec spec = tiny_spec(NormPlace::post);
  std::vector<Sample> samples = random_samples({40, 2}, 49);
  samples[0].special.assign(40, 0);
  samples[0].special.front() = samples[0].special.back() = 1;
  const Questions q = questions_for(spec, samples, 49, 3);
  EXPECT_EQ(q.kind, LossKind::masked);
  EXPECT_EQ(q.answers.places[0].size(), 6u);  // 15 % of 38, rounded
  EXPECT_EQ(q.answers.places[1].size(), 1u);  // one at least
  const std::set<int64_t> hidden(q.answers.places[0].begin(), q.answers.places[0].end());
  EXPECT_EQ(hidden.size(), 6u);
  for (int64_t i = 0; i < 40; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(q.samples[0].ids[at], hidden.count(i) ? 49 : samples[0].ids[at]);
    EXPECT_FALSE(samples[0].special[at] && hidden.count(i) > 0);
  }
  EXPECT_EQ(questions_for(spec, samples, 49, 3).answers.places, q.answers.places);
  EXPECT_NE(questions_for(spec, samples, 49, 4).answers.places, q.answers.places);
}

TEST(Loss, NothingIsInventedWhereNothingIsAsked) {
  const std::vector<Sample> samples = random_samples({9}, 50);
  EXPECT_EQ(questions_for(tiny_spec(NormPlace::post), samples, {}, 0).kind, LossKind::none);  // no mask
  EXPECT_EQ(questions_for(tiny_spec(NormPlace::post), samples, 50, 0).kind, LossKind::none);  // no such word
  EXPECT_EQ(questions_for(tiny_spec(NormPlace::pre), random_samples({1, 1}, 50), {}, 0).kind, LossKind::none);
  ModelSpec headless = tiny_spec(NormPlace::pre);
  headless.output.kind = HeadKind::none;
  EXPECT_EQ(loss_kind(headless), LossKind::none);
  ModelSpec classes = tiny_spec(NormPlace::pre);
  classes.output.vocabulary = 3;
  EXPECT_EQ(loss_kind(classes), LossKind::none);
  ModelSpec ordered = tiny_spec(NormPlace::post);
  ordered.position = PositionKind::relative;
  EXPECT_EQ(loss_kind(ordered), LossKind::none);
}

TEST(Loss, TheMeanWeighsSamplesByTheirTokens) {
  const WeightedMean mean = mean_over_tokens({1.0, 4.0}, {3, 1});
  EXPECT_DOUBLE_EQ(mean.value, 1.75);
  // Ratio: sqrt(n / (n - 1) sum w^2 (v - m)^2) / sum w = sqrt(2 (2.25^2 + 2.25^2)) / 4.
  EXPECT_DOUBLE_EQ(mean.error, 4.5 / 4);
  EXPECT_TRUE(std::isnan(mean_over_tokens({1.0}, {3}).error));
}

// The reference: all logits at once, log_softmax, and a loop. float64 and sums of at most 50 words: 1e-12.
TEST(Loss, TilesGiveWhatTheWholeTableGives) {
  ModelSpec spec = tiny_spec(NormPlace::pre);
  spec.output.vocabulary = spec.embedding.vocabulary = 5000;  // two tiles
  spec.output.softcap = 3.0;
  const auto source = random_source(spec, 5, "float64", "cpu");
  const at::Tensor full = at::randn({7, 24}, at::kDouble), other = at::randn({7, 24}, at::kDouble);
  const at::Tensor ids = at::tensor({0, 4999, 4096, 4095, 17, 3000, 1}, at::kLong);
  const std::vector<RowOutputs> read = read_rows(*source, {full, other}, ids);
  const at::Tensor W = source->row_range("unembed.W_U", 0, 5000);
  const auto log_p = [&](const at::Tensor& h) {
    return at::log_softmax(capped(at::linear(h, W), spec.output), 1);
  };
  const at::Tensor p = log_p(full), q = log_p(other);
  for (int64_t i = 0; i < 7; ++i) {
    const int64_t id = ids[i].item<int64_t>();
    EXPECT_NEAR(read[0].nll[i].item<double>(), -p[i][id].item<double>(), 1e-12);
    EXPECT_NEAR(read[1].nll[i].item<double>(), -q[i][id].item<double>(), 1e-12);
    EXPECT_NEAR(read[1].kl[i].item<double>(), (p[i].exp() * (p[i] - q[i])).sum().item<double>(), 1e-12);
    EXPECT_EQ(read[0].kl[i].item<double>(), 0);
  }
}

// Logits recorded from another implementation give the loss of the scan: the checkpoint was read right.
TEST(Loss, AgreesWithLogitsOfHuggingFace) {
  const std::filesystem::path folder = test::fixtures() / "models" / "gpt2";
  const SafetensorsFile file(folder / "activations_f64.safetensors");
  const at::Tensor ids = read_tensor(file, "input_ids").to(at::kLong),
                   mask = read_tensor(file, "attention_mask").to(at::kLong),
                   log_p = at::log_softmax(read_tensor(file, "logits").to(at::kDouble), -1);
  double sum = 0;
  int64_t count = 0;
  std::vector<Sample> samples;
  for (int64_t s = 0; s < ids.size(0); ++s) {
    Sample sample;
    for (int64_t t = 0; t < ids.size(1); ++t)
      if (mask[s][t].item<int64_t>() != 0) {
        if (!sample.ids.empty()) sum -= log_p[s][t - 1][ids[s][t]].item<double>(), ++count;
        sample.ids.push_back(ids[s][t].item<int64_t>());
        sample.positions.push_back(t);
      }
    samples.push_back(std::move(sample));
  }
  const Checkpoint checkpoint(folder);
  const auto source = checkpoint_source(checkpoint, "float64", "cpu");
  PassPlan plan;
  plan.variants = {{"full", checkpoint.spec(), 0, 0}};
  plan.sources = {source.get()};
  plan.inputs = {make_batches(samples, checkpoint.spec(), 2)};
  plan.layers.assign(static_cast<size_t>(checkpoint.spec().depth()), true);
  ResultTable table;
  std::vector<std::string> notes;
  const std::vector<FinalState> states = run_pass(plan, table, notes, {});
  add_losses(states, plan, {questions_for(checkpoint.spec(), samples, {}, 0)}, table);
  ASSERT_FALSE(table.rows.empty());
  EXPECT_EQ(table.rows[0].metric.str(), "nll");
  EXPECT_NEAR(table.rows[0].value, sum / static_cast<double>(count), 1e-9);  // activations agree to 1e-10
  EXPECT_EQ(table.rows[1].metric.str(), "perplexity");
  EXPECT_DOUBLE_EQ(table.rows[1].value, std::exp(table.rows[0].value));
}

TEST(Loss, StandsInFrontOfTheTableForEveryVariant) {
  ScanRequest r = random_tokens_through("gpt2", 3, 9);
  r.off = {"skip", "head:L0H0"};
  const ScanResult result = scan(r, {});
  std::vector<std::string> named;
  for (const Row& row : result.table.rows) {
    if (row.metric != "nll" && row.metric != "perplexity") break;
    if (row.metric == "nll") named.push_back(row.variant.str());
    EXPECT_TRUE(std::isfinite(row.stderr_));
    EXPECT_EQ(row.n, 3);
  }
  EXPECT_EQ(named, (std::vector<std::string>{"full", "-skip", "-head:L0H0"}));
  EXPECT_TRUE(result.manifest["metrics"].contains("nll"));
}

}  // namespace
}  // namespace rankscope
