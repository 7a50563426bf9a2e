// Real processes, killed at moments that are different each time they are met.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>

#include "sweep/fake_store.h"
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

int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

void pause_ms(uint64_t milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

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
    kills += WIFSIGNALED(wait_for(child)) ? 1 : 0;
    const std::map<std::string, int> now = starts(folder.path());
    const Store store(folder.path());
    for (const std::string& id : ids(store, TrialState::done)) started_when_done.try_emplace(id, now.at(id));
    if (store.counts().done == store.counts().all()) break;
  }
  ASSERT_EQ(wait_for(start(folder.path())), 0);
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
    wait_for(child);
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
  ASSERT_EQ(wait_for(start(folder.path())), 0);
  expect_all_done_and_right(Store(folder.path()));
}

TEST_F(Crash, TerminatedItLeavesCleanlyWithNothingRunning) {
  {
    Store store(folder.path(), true);
    fill(store, fake_study(4, 20, 5));
  }
  const pid_t child = start(folder.path());
  while (starts(folder.path()).empty()) pause_ms(5);
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child), 0);
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
  EXPECT_EQ(wait_for(one), 0);
  EXPECT_EQ(wait_for(two), 0);
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
  while (starts(folder / "here").size() < 2) pause_ms(5);
  ::kill(child, SIGKILL);
  wait_for(child);
  fs::rename(folder / "here", folder / "there");
  EXPECT_EQ(wait_for(start(folder / "there")), 0);
  const Store store(folder / "there");
  expect_all_done_and_right(store);
  EXPECT_FALSE(fs::exists(folder / "here"));
}

}  // namespace
}  // namespace rankscope::test
