#include "studies/support/path_accuracy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/philox.h"
#include "operator/frozen.h"
#include "operator/paths.h"
#include "studies/study.h"
#include "studies/support/token_config.h"
#include "support/temporary_folder.h"
#include "train/data.h"
#include "train/export.h"
#include "train/layout.h"
#include "train/plain_forward.h"

namespace rankscope {
extern const Runner runner_path_accuracy;
namespace {

class PathsOfARandomNetwork : public testing::Test {
 protected:
  static TrialSpec trial() {
    TrialSpec t;
    t.network = token_network({.layers = 3, .heads = 2, .width = 12, .positions = true, .tokens = 6}, 10, 10);
    return t;
  }
  static std::vector<float> parameters() {
    std::vector<float> values;
    const Philox random{5, 1, 0};
    for (int64_t i = 0; i < parameter_count(trial().network); ++i)
      values.push_back(static_cast<float>(0.4 * random.normal(static_cast<uint64_t>(i))));
    return values;
  }
  TokenSet set_ = token_task_named("sort").make({.tokens = 6, .train = 1, .test = 30, .seed = 1}).test;
  TrainedModel model_{trial(), parameters(), &set_};
  PathAccuracy paths_{model_, set_, {.draws = 3, .seed = 8}};
};

TEST_F(PathsOfARandomNetwork, LengthsAndBiasAddUpToTheLogits) {
  const Batch batch = make_batches(samples_of(set_), model_.spec(), 30).front();
  const FrozenNetwork frozen(model_.spec(), model_, batch);
  const at::Tensor lengths = path_sums(frozen.trunk(), frozen.input()).sum(2).sum(1);
  const at::Tensor W = model_.row_range("unembed.W_U", 0, 10), b = model_.load("unembed").get("b_U");
  at::Tensor logits = at::linear(frozen.bias(), W, b);
  for (int64_t k = 0; k <= 3; ++k) logits = logits + at::linear(lengths[k], W);
  const std::vector<float> p = parameters();
  const at::Tensor flat = at::tensor(at::ArrayRef<float>(p.data(), p.size()), at::kFloat).to(at::kDouble);
  const ParameterViews views(Layout(trial().network), flat, false, false);
  for (int64_t s = 0; s < 30; ++s) {
    const at::Tensor own = plain_forward(trial().network, views, batch_of(set_, {batch.samples[size_t(s)]}));
    EXPECT_LT((own - logits.narrow(0, 6 * s, 6)).abs().max().item<double>(), 1e-10);
  }
}

TEST_F(PathsOfARandomNetwork, UpToTheLongestIsTheWholeNetwork) {
  EXPECT_EQ(paths_.read(Semantics::frozen, "upto", 3).accuracy, paths_.full());
}

TEST_F(PathsOfARandomNetwork, AFullDrawIsEveryPath) {
  // Length 1 has 6 paths, length 3 has 8.
  for (const Semantics semantics : {Semantics::rerun, Semantics::subpaths})
    for (const int64_t k : {0, 1, 3}) {
      const PathScore all = paths_.read(semantics, "all", k), eight = paths_.read(semantics, "8", k);
      EXPECT_EQ(all.accuracy, eight.accuracy);
      EXPECT_EQ(eight.draws, 1);
      EXPECT_EQ(eight.spread, 0);
    }
  EXPECT_EQ(paths_.read(Semantics::rerun, "2", 1).draws, 3);
}

TEST_F(PathsOfARandomNetwork, SumsOverAllPathsAreSumsOverTheList) {
  const Batch batch = make_batches(samples_of(set_), model_.spec(), 30).front();
  const PathRunner runner(model_.spec(), model_, batch);
  for (const Semantics semantics : {Semantics::rerun, Semantics::subpaths}) {
    const auto all = runner.sum_all(semantics);
    for (int64_t k = 0; k <= 3; ++k)
      EXPECT_LT((all[size_t(k)] - runner.sum(sample_paths(3, 2, k, 100, 0, 0), semantics))
                    .abs()
                    .max()
                    .item<double>(),
                1e-10);
  }
}

// Those of one network train once: in two stacks, two workers would train it in the same folder.
TEST(PathAccuracyTrials, OfOneNetworkGoTogether) {
  const Runner& runner = runner_path_accuracy;
  const auto key = [&](Config given) { return runner.stack_key(complete(runner.keys, given, "test")); };
  EXPECT_EQ(key({{"draws", int64_t{5}}, {"length", int64_t{1}}}), key({{"draws", int64_t{2}}}));
  EXPECT_NE(key({{"seed", int64_t{1}}}), key({{"seed", int64_t{2}}}));
}

// Two tokens (a, b) and (a, -b) have the residual b / sqrt(a^2 + b^2).
TEST(PathResidual, IsTheGeometricMeanOverSequences) {
  const at::Tensor x = at::tensor({3.0, 4.0, 3.0, -4.0, 12.0, 5.0, 12.0, -5.0}, at::kDouble).view({4, 2});
  Batch two;
  two.offsets = {0, 2, 4};
  two.samples = {0, 1};
  // A few roundings of 2^-53 each. The arithmetic mean is 0.592 instead of 0.555.
  EXPECT_NEAR(relative_residual(x, two), std::sqrt(4.0 / 5 * 5 / 13), 8 * 0x1p-53);
  EXPECT_EQ(relative_residual(at::ones({4, 2}, at::kDouble), two), 0);
}

TEST_F(PathsOfARandomNetwork, AReadingHoldsTheResidualOfItsSum) {
  const Batch batch = make_batches(samples_of(set_), model_.spec(), 30).front();
  const FrozenNetwork frozen(model_.spec(), model_, batch);
  const at::Tensor lengths = path_sums(frozen.trunk(), frozen.input()).sum(2).sum(1);
  for (int64_t k = 0; k <= 3; ++k)
    EXPECT_EQ(paths_.read(Semantics::frozen, "only", k).residual, relative_residual(lengths[k], batch));
}

// Sums of norms over norms of sums: at least 1 by the triangle inequality, the same whatever length is asked
// for.
TEST_F(PathsOfARandomNetwork, CancellationIsTheSumOfNormsOverTheNormOfTheSum) {
  const Batch batch = make_batches(samples_of(set_), model_.spec(), 30).front();
  const FrozenNetwork frozen(model_.spec(), model_, batch);
  const at::Tensor lengths = path_sums(frozen.trunk(), frozen.input()).sum(2).sum(1);
  double norms = 0;
  for (int64_t k = 0; k <= 3; ++k) norms += lengths[k].norm().item<double>();
  const double ratio = norms / (frozen.output() - frozen.bias()).norm().item<double>();
  EXPECT_GT(ratio, 1);
  // The output is put together in another order: some hundred roundings of 2^-53.
  EXPECT_NEAR(paths_.read(Semantics::frozen, "only", 2).cancellation, ratio, 1e-12 * ratio);
  EXPECT_EQ(paths_.read(Semantics::frozen, "upto", 0).cancellation,
            paths_.read(Semantics::frozen, "only", 2).cancellation);
}

// Within a length: length 0 has one path, so nothing cancels; longer ones have 6, 12 and 8.
TEST_F(PathsOfARandomNetwork, PathsOfALengthCancelAsTheirNormsSay) {
  EXPECT_NEAR(paths_.read(Semantics::frozen, "only", 0).path_cancellation, 1, 1e-12);
  const Batch batch = make_batches(samples_of(set_), model_.spec(), 30).front();
  const FrozenNetwork frozen(model_.spec(), model_, batch);
  std::vector<std::pair<int, int>> which;
  const at::Tensor lengths = path_sums(frozen.trunk(), frozen.input()).sum(2).sum(1);
  const std::vector<double> norms = sums_of_path_norms(frozen.trunk(), frozen.input());
  ASSERT_EQ(norms.size(), 4u);
  for (int64_t k = 1; k <= 3; ++k) {
    const double ratio = paths_.read(Semantics::frozen, "only", k).path_cancellation;
    EXPECT_GT(ratio, 1) << k;
    EXPECT_NEAR(ratio, norms[static_cast<size_t>(k)] / lengths[k].norm().item<double>(), 1e-12 * ratio) << k;
  }
  // With one block its heads' paths are what head_marginals has.
  AffineChain first;
  for (size_t i = 0; i < 2; ++i) first.push(frozen.trunk().steps()[i]);  // attention with its skip, norm
  const at::Tensor heads = head_marginals(first, frozen.input(), which);
  const double sum = heads[0].norm().item<double>() + heads[1].norm().item<double>();
  EXPECT_NEAR(sums_of_path_norms(first, frozen.input())[1], sum, 1e-12 * sum);
}

TEST(PathReadings, ThatDoNotExistAreRefused) {
  EXPECT_THROW(check_reading(Semantics::frozen, "onyl"), Error);
  EXPECT_THROW(check_reading(Semantics::rerun, "only"), Error);
  EXPECT_THROW(check_reading(Semantics::subpaths, "0"), Error);
  EXPECT_NO_THROW(check_reading(Semantics::subpaths, "all"));
}

TEST(PathReadings, CostTheHeadsTheyRun) {
  const auto cost = [](const char* reading, int64_t length, bool replacement = false) {
    return heads_run(Semantics::rerun, reading, length, 3, 2, {.draws = 5, .replacement = replacement});
  };
  // 6, 12 and 8 paths, each a head longer than one of the length before.
  EXPECT_EQ(cost("all", 0) + cost("all", 1) + cost("all", 2) + cost("all", 3), 3 * 3 * 3 - 1);
  EXPECT_EQ(cost("4", 3), 5 * 4 * 3);
  EXPECT_EQ(cost("8", 3), cost("all", 3));
  EXPECT_EQ(cost("8", 3, true), 5 * 8 * 3);
  EXPECT_EQ(heads_run(Semantics::frozen, "only", 3, 3, 2, {}), 0);
}

// A stack of readings trains once, and every reading alone gives what it gave in company.
TEST(PathAccuracyRunner, ReadsOneTrainingInManyWays) {
  TemporaryFolder folder;
  const Runner& runner = runner_path_accuracy;
  const Config small{{"layers", int64_t{2}}, {"d", int64_t{8}},     {"tokens", int64_t{4}},
                     {"train", int64_t{60}}, {"test", int64_t{20}}, {"epochs", int64_t{2}}};
  std::vector<TrialJob> jobs;
  for (const auto& [semantics, reading] :
       {std::pair("frozen", "only"), {"frozen", "upto"}, {"rerun", "3"}, {"subpaths", "all"}})
    for (int64_t k = 0; k <= 2; ++k) {
      Config c = small;
      c["semantics"] = std::string(semantics);
      c["reading"] = std::string(reading);
      c["length"] = k;
      c = complete(runner.keys, c, "test");
      runner.check(c);
      const std::string id = trial_id(runner.name, c);
      jobs.push_back({id, c, folder.path() / id});
      EXPECT_EQ(runner.stack_key(c), runner.stack_key(jobs.front().config));
    }
  const std::atomic<bool> stop{false};
  std::map<size_t, Outcome> together;
  int64_t steps = 0;
  RunContext context;
  context.stop = &stop;
  context.progress = [&](const RunProgress& p) { steps = p.steps_done; };
  context.finished = [&](size_t job, const Outcome& o) { together[job] = o; };
  runner.run(jobs, context);
  ASSERT_EQ(together.size(), jobs.size());
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(together[5].values.at("accuracy"), together[5].values.at("full_accuracy"));
  EXPECT_DOUBLE_EQ(together[0].values.at("chance"), 0.1);
  std::map<size_t, Outcome> alone;
  context.finished = [&](size_t, const Outcome& o) { alone[7] = o; };
  runner.run(std::span(jobs).subspan(7, 1), context);
  EXPECT_EQ(alone[7].values, together[7].values);
  runner.export_model(jobs[9], folder.path() / "exported");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "exported" / "config.json"));
}

// A trial is a function of its configuration, which has the name of the file alone.
TEST(PathAccuracyRunner, ATextThatChangedBehindItsNetworkIsRefused) {
  TemporaryFolder folder;
  const Runner& runner = runner_path_accuracy;
  const std::filesystem::path file = folder.path() / "text.txt";
  const std::string before = "a rose is a rose\nis it a rose\n", after = "a rose is it a\nrose is a rose\n";
  const auto job = [&](int64_t length) {
    const Config config = complete(runner.keys,
                                   {{"task", std::string("memorise")},
                                    {"text", file.string()},
                                    {"length", length},
                                    {"layers", int64_t{1}},
                                    {"heads", int64_t{1}},
                                    {"d", int64_t{4}},
                                    {"tokens", int64_t{4}},
                                    {"train", int64_t{2}},
                                    {"test", int64_t{2}},
                                    {"epochs", int64_t{1}}},
                                   "test");
    const std::string id = trial_id(runner.name, config);
    return TrialJob{id, config, folder.path() / id};
  };
  const auto accuracy = [&](int64_t length) {
    const std::vector<TrialJob> jobs{job(length)};
    const std::atomic<bool> stop{false};
    double found = -1;
    RunContext context;
    context.stop = &stop;
    context.finished = [&](size_t, const Outcome& o) { found = o.values.at("full_accuracy"); };
    runner.run(jobs, context);
    return found;
  };
  write_file(file, before);
  const double whole = accuracy(0);
  EXPECT_EQ(accuracy(1), whole);
  write_file(file, after);
  try {
    accuracy(1);
    FAIL() << "another text was asked";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "the text has changed since this network was trained on it: give the old one back, or begin in "
              "another folder with --out");
    EXPECT_EQ(e.place(), "text=" + file.string());
  }
  EXPECT_THROW(runner.export_model(job(0), folder.path() / "exported"), Error);
  write_file(file, before);
  EXPECT_EQ(accuracy(1), whole);
  EXPECT_NO_THROW(runner.export_model(job(0), folder.path() / "exported"));
}

TEST(PathAccuracyRunner, RefusesPathsLongerThanTheNetwork) {
  const Config c = complete(runner_path_accuracy.keys, {{"length", int64_t{7}}}, "test");
  EXPECT_THROW(runner_path_accuracy.check(c), Error);
}

}  // namespace
}  // namespace rankscope
