// Real processes, killed at moments that are different each time they are met.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "sweep/fake_store.h"
#include "sweep/processes.h"
#include "sweep/schedule.h"

namespace rankscope::test {
namespace {

namespace fs = std::filesystem;

const char* program() { return std::getenv("RANKSCOPE_FAKE_STUDY"); }

pid_t start(const fs::path& folder, const char* lease = "120") {
  const pid_t child = ::fork();
  if (child == 0) {
    const int nothing = ::open("/dev/null", O_WRONLY);
    ::dup2(nothing, STDOUT_FILENO);
    ::execl(program(), program(), folder.c_str(), lease, nullptr);
    ::_exit(127);
  }
  return child;
}

std::map<std::string, int> starts(const fs::path& folder) {
  std::map<std::string, int> out;
  std::ifstream log(folder / "trials" / "starts.log");
  for (std::string id; log >> id;) ++out[id];
  return out;
}

class Crash : public testing::Test {
 protected:
  void SetUp() override {
    if (program() == nullptr) GTEST_SKIP() << "RANKSCOPE_FAKE_STUDY is not set: run with ctest";
  }
  const TempFolder folder;
};

TEST_F(Crash, KilledAgainAndAgainEveryTrialFinishesOnceWithTheValueOfAnUndisturbedRun) {
  {
    Store store(folder.path(), true);
    fill(store, fake_study(4, 20, 1));
  }
  const Philox random{2024};
  std::map<std::string, int> started_when_done;
  int kills = 0;
  for (uint64_t round = 0; round < 60; ++round) {
    const pid_t child = start(folder.path());
    pause_ms(20 + random.below(120, round));
    ::kill(child, SIGKILL);
    kills += WIFSIGNALED(wait_for(child, "a killed study")) ? 1 : 0;
    const std::map<std::string, int> now = starts(folder.path());
    const Store store(folder.path());
    for (const std::string& id : ids(store, TrialState::done)) started_when_done.try_emplace(id, now.at(id));
    if (store.counts().done == store.counts().all()) break;
  }
  ASSERT_EQ(wait_for(start(folder.path()), "the study after the kills"), 0);
  EXPECT_GE(kills, 3);
  const Store store(folder.path());
  expect_all_done_and_right(store);
  const std::map<std::string, int> after = starts(folder.path());
  for (const auto& [id, count] : started_when_done)
    EXPECT_EQ(after.at(id), count) << "ran again after it was done";
}

TEST_F(Crash, AWriteAheadLogCutOffAnywhereLosesNoResult) {
  {
    Store store(folder.path(), true);
    fill(store, fake_study(4, 10, 1));
  }
  const Philox random{7};
  const fs::path log = folder / "study.db-wal";
  for (uint64_t round = 0; round < 12; ++round) {
    const pid_t child = start(folder.path());
    pause_ms(40 + random.below(60, round));
    ::kill(child, SIGKILL);
    wait_for(child, "a killed study");
    const std::map<std::string, int> before = starts(folder.path());
    std::set<std::string> finished;
    for (const auto& [id, count] : before)
      if (fs::exists(folder / "trials" / id / "result.json")) finished.insert(id);
    if (fs::exists(log) && fs::file_size(log) > 0)
      fs::resize_file(log, random.below(fs::file_size(log), 1000 + round));
    fs::remove(folder / "study.db-shm");  // belongs to the machine that lost its power
    Store store(folder.path());
    store.reclaim();
    EXPECT_EQ(store.counts().all(), 16);
    for (const std::string& id : finished) EXPECT_EQ(store.find(id)->state, TrialState::done);
  }
  ASSERT_EQ(wait_for(start(folder.path()), "the study after the kills"), 0);
  expect_all_done_and_right(Store(folder.path()));
}

TEST_F(Crash, TerminatedItLeavesCleanlyWithNothingRunning) {
  {
    Store store(folder.path(), true);
    fill(store, fake_study(4, 20, 5));
  }
  const pid_t child = start(folder.path());
  wait_until("the first trial to start", [&] { return !starts(folder.path()).empty(); });
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child, "a study that was told to stop"), 0);
  const Store store(folder.path());
  EXPECT_EQ(store.counts().running, 0);
  EXPECT_GT(store.counts().pending, 0);
}

TEST_F(Crash, TwoProcessesShareAStoreAndRunNothingTwice) {
  {
    Store store(folder.path(), true);
    fill(store, fake_study(8, 10, 2));
  }
  const pid_t one = start(folder.path()), two = start(folder.path());
  EXPECT_EQ(wait_for(one, "the first process"), 0);
  EXPECT_EQ(wait_for(two, "the second process"), 0);
  const Store store(folder.path());
  expect_all_done_and_right(store);
  for (const auto& [id, count] : starts(folder.path())) EXPECT_EQ(count, 1) << id;
}

TEST_F(Crash, AMovedFolderGoesOn) {
  {
    Store store(folder / "here", true);
    fill(store, fake_study(2, 10, 2));
  }
  const pid_t child = start(folder / "here");
  wait_until("two trials to start", [&] { return starts(folder / "here").size() >= 2; });
  ::kill(child, SIGKILL);
  wait_for(child, "a killed study");
  fs::rename(folder / "here", folder / "there");
  EXPECT_EQ(wait_for(start(folder / "there"), "the study in its new place"), 0);
  const Store store(folder / "there");
  expect_all_done_and_right(store);
  EXPECT_FALSE(fs::exists(folder / "here"));
}

}  // namespace
}  // namespace rankscope::test
