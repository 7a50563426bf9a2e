#include "sweep/schedule.h"

#include <gtest/gtest.h>

#include "sweep/fake_store.h"

namespace rankscope::test {
namespace {

std::vector<TrialJob> jobs(const char* rank, const char* d, int seeds) {
  std::vector<TrialJob> out;
  const std::vector<Key>& keys = fake_runner().keys;
  for (const Trial& t :
       trials(fake_study(seeds, 5, 0), fake_runner(), {parse_override(rank, keys), parse_override(d, keys)}))
    out.push_back({t.id, t.config, "nowhere"});
  return out;
}

std::vector<size_t> sizes(const std::vector<TrialStack>& stacks) {
  std::vector<size_t> out;
  for (const TrialStack& s : stacks) out.push_back(s.jobs.size());
  return out;
}

TEST(Schedule, StacksAreNearlyEqualAndTheDearestComesFirst) {
  // d = 32: 6 trials in stacks of at most 4, so 3 and 3; d = 16: 3 trials, half the price each.
  std::vector<TrialJob> all = jobs("rank=1,2,4", "d=32", 2);
  for (const TrialJob& job : jobs("rank=1,2,4", "d=16", 1)) all.push_back(job);
  const std::vector<TrialStack> stacks = plan_stacks(fake_runner(), all, "cpu");
  EXPECT_EQ(sizes(stacks), (std::vector<size_t>{3, 3, 3}));
  EXPECT_EQ(integer(stacks[0].jobs[0].config, "d"), 32);
  EXPECT_EQ(integer(stacks[2].jobs[0].config, "d"), 16);
}

TEST(Schedule, WhatAStackSharesCountsOnce) {
  Runner runner = fake_runner();
  runner.shared_flops = [](const Config& c) { return 1e9 * number(c, "d"); };
  const std::vector<TrialStack> stacks = plan_stacks(runner, jobs("rank=1,2,4", "d=32", 2), "cpu");
  EXPECT_EQ(sizes(stacks), (std::vector<size_t>{3, 3}));
  for (const TrialStack& stack : stacks) EXPECT_EQ(stack.flops, 32e9 + 3 * 32 * 5e6);
}

TEST(Schedule, WorkersShareAStackThatOneCouldTake) {
  EXPECT_EQ(sizes(plan_stacks(fake_runner(), jobs("rank=1,2,4", "d=16", 1), "cpu", 3)),
            (std::vector<size_t>{1, 1, 1}));
}

TEST(Schedule, ATrainingThatTrialsShareIsNotDoneByEveryWorker) {
  Runner runner = fake_runner();
  runner.shared_flops = [](const Config&) { return 1e9; };
  std::vector<TrialJob> all = jobs("rank=1,2,4", "d=32", 1);
  for (const TrialJob& job : jobs("rank=1,2,4", "d=16", 1)) all.push_back(job);
  EXPECT_EQ(sizes(plan_stacks(runner, all, "", 3)), (std::vector<size_t>{3, 3}));  // two networks
}

TEST(Schedule, EveryTrialRunsOnceAndIsRecorded) {
  const TempFolder folder;
  Store store(folder.path(), true);
  fill(store, fake_study(3, 6, 0));
  int64_t calls = 0;
  SweepProgress last;
  const SweepReport report = run_study(store, fake_runner(), {}, [&](const SweepProgress& p) {
    ++calls;
    last = p;
  });
  EXPECT_EQ(report.done, 12);
  EXPECT_EQ(report.failed, 0);
  EXPECT_GT(calls, 12);
  EXPECT_EQ(last.trials_done, 12);
  EXPECT_EQ(last.trials_total, 12);
  EXPECT_EQ(last.flops_total, 12 * 6 * 16e6);
  expect_all_done_and_right(store);
}

TEST(Schedule, ADivergedTrialFailsAloneAndOfAStackWhoseTrialsAllThrowEachFails) {
  const TempFolder folder;
  Store store(folder.path(), true);
  const std::vector<Key>& keys = fake_runner().keys;
  const Study study = fake_study(1, 5, 0);
  store.keep_study(study);
  store.add(study, trials(study, fake_runner(), {parse_override("fault=none,diverge,throw", keys)}));
  const SweepReport report = run_study(store, fake_runner(), {}, {});
  EXPECT_EQ(report.done, 4);
  EXPECT_EQ(report.failed, 8);
  for (const StoredTrial& trial : store.trials()) {
    const std::string fault = text(parse_canonical(trial.config), "fault");
    EXPECT_EQ(trial.reason, fault == "none"      ? ""
                            : fault == "diverge" ? "diverged at step 3: the loss is not finite"
                                                 : "the runner fell over (fake)");
  }
}

TEST(Schedule, ATrialThatThrowsFailsAloneAndTheRestOfItsStackFinishes) {
  const TempFolder folder;
  Store store(folder.path(), true);
  Runner runner = fake_runner();
  runner.stack_key = [](const Config&) { return std::string("all together"); };
  const Study study = fake_study(1, 5, 0);
  store.keep_study(study);
  store.add(study, trials(study, runner, {parse_override("fault=none,throw", runner.keys)}));
  const SweepReport report = run_study(store, runner, {}, {});
  EXPECT_EQ(report.done, 4);
  EXPECT_EQ(report.failed, 4);
  for (const StoredTrial& trial : store.trials()) {
    const Config config = parse_canonical(trial.config);
    if (text(config, "fault") == "throw") {
      EXPECT_EQ(trial.reason, "the runner fell over (fake)");
    } else {
      EXPECT_EQ(trial.values.at("test_mse"), fake_sum(config));
    }
  }
}

TEST(Schedule, AReasonHasOneLineAndNoStackTrace) {
  const TempFolder folder;
  Store store(folder.path(), true);
  fill(store, fake_study(1, 5, 0));
  Runner runner = fake_runner();
  runner.run = [](std::span<const TrialJob>, const RunContext&) {  // as torch words it
    throw std::runtime_error("the sizes 3 and 4 do not match\nException raised from mul\nframe #0: f");
  };
  EXPECT_EQ(run_study(store, runner, {}, {}).failed, 4);
  for (const StoredTrial& trial : store.trials()) EXPECT_EQ(trial.reason, "the sizes 3 and 4 do not match");
}

TEST(Schedule, AMissingDeviceFailsNothing) {
  const TempFolder folder;
  Store store(folder.path(), true);
  fill(store, fake_study(2, 5, 0));
  SweepOptions options;
  options.device = "cuda";
  EXPECT_EQ(error_of([&] { run_study(store, fake_runner(), options, {}); }).message(),
            "there is no device cuda");
  EXPECT_EQ(store.counts().pending, 8);
}

TEST(Schedule, AStopGivesTrialsBackAndTheNextRunGoesOn) {
  const TempFolder folder;
  Store store(folder.path(), true);
  fill(store, fake_study(1, 50, 1));
  std::atomic<bool> stop{false};
  SweepOptions options;
  options.stop = &stop;
  const SweepReport report = run_study(store, fake_runner(), options, [&](const SweepProgress& p) {
    if (p.trials_done == 1 && p.flops_done > 70e6) stop = true;
  });
  EXPECT_GE(report.done, 1);
  EXPECT_GE(report.left, 1);
  EXPECT_EQ(store.counts().running, 0);
  run_study(store, fake_runner(), {}, {});
  expect_all_done_and_right(store);
}

TEST(Schedule, WhatCannotBeRecordedStopsTheRunAndLosesNothing) {
  const TempFolder folder;
  Store store(folder.path(), true);
  fill(store, fake_study(1, 5, 0));
  // A folder where the result belongs: writing it fails, as on a full disk.
  for (const StoredTrial& trial : store.trials())
    std::filesystem::create_directories(store.trial_folder(trial.id) / "result.json" / "x");
  EXPECT_FALSE(error_of([&] { run_study(store, fake_runner(), {}, {}); }).message().empty());
  EXPECT_EQ(store.counts().pending, 4);
  for (const StoredTrial& trial : store.trials())
    std::filesystem::remove_all(store.trial_folder(trial.id) / "result.json");
  run_study(store, fake_runner(), {}, {});
  expect_all_done_and_right(store);
}

}  // namespace
}  // namespace rankscope::test
