// Real mpirun, four processes, one of them killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sweep/fake_store.h"
#include "sweep/processes.h"

namespace rankscope::test {
namespace {

const char* program() { return std::getenv("RANKSCOPE_FAKE_CLUSTER"); }

pid_t start(const std::filesystem::path& folder, bool recovery) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int output = ::open((folder / "mpirun.log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    std::vector<const char*> words{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"};
    if (recovery) words.push_back("--enable-recovery");
    for (const char* word : {program(), folder.c_str(), "3"}) words.push_back(word);
    words.push_back(nullptr);
    ::execvp("mpirun", const_cast<char* const*>(words.data()));
    ::_exit(127);
  }
  return child;
}

// The pid of some worker that holds a trial: it is in the owner's name.
pid_t busy_worker(const Store& store) {
  pid_t out = 0;
  wait_until("a worker to take a trial", [&] {
    for (const StoredTrial& trial : store.trials())
      if (trial.state == TrialState::running)
        out = static_cast<pid_t>(std::atoi(trial.owner.c_str() + trial.owner.find(':') + 1));
    return out != 0;
  });
  return out;
}

class Mpi : public testing::Test {
 protected:
  void SetUp() override {
    if (program() == nullptr)
      GTEST_SKIP() << "RANKSCOPE_FAKE_CLUSTER is not set: no MPI, or not run with ctest";
  }
  std::string said() const { return get(folder / "mpirun.log"); }
  const TempFolder folder;
};

TEST_F(Mpi, WorkersShareTheTrialsAndRunNothingTwice) {
  Store store(folder.path(), true);
  fill(store, fake_study(4, 10, 2));
  EXPECT_EQ(wait_for(start(folder.path(), true), "mpirun"), 0) << said();
  expect_all_done_and_right(store);
  EXPECT_NE(said().find("done 16 failed 0 left 0"), std::string::npos) << said();
  for (const StoredTrial& trial : store.trials()) EXPECT_EQ(trial.attempts, 1);
}

TEST_F(Mpi, AWorkerKilledMidTrialCostsItsStackOnly) {
  Store store(folder.path(), true);
  fill(store, fake_study(4, 20, 10));
  const pid_t mpirun = start(folder.path(), true);
  const pid_t worker = busy_worker(store);
  if (worker == 0) ::kill(mpirun, SIGKILL);
  ASSERT_GT(worker, 0) << said();
  pause_ms(100);
  std::set<std::string> lost;
  for (const StoredTrial& trial : store.trials())
    if (trial.owner.find(fmt::format(":{}:", worker)) != std::string::npos) lost.insert(trial.id);
  ::kill(worker, SIGKILL);
  EXPECT_EQ(wait_for(mpirun, "mpirun"), 0) << said();
  expect_all_done_and_right(store);
  for (const StoredTrial& trial : store.trials())
    EXPECT_LE(trial.attempts, lost.contains(trial.id) ? 2 : 1) << trial.id;
}

TEST_F(Mpi, WithoutRecoveryTheJobEndsAndTheNextOneGoesOn) {
  Store store(folder.path(), true);
  fill(store, fake_study(2, 20, 50));
  const pid_t mpirun = start(folder.path(), false);
  const pid_t worker = busy_worker(store);
  if (worker == 0) ::kill(mpirun, SIGKILL);
  ASSERT_GT(worker, 0) << said();
  ::kill(worker, SIGKILL);
  EXPECT_NE(wait_for(mpirun, "mpirun"), 0);
  EXPECT_LT(store.counts().done, 8);
  EXPECT_EQ(wait_for(start(folder.path(), true), "mpirun"), 0) << said();
  expect_all_done_and_right(store);
}

TEST_F(Mpi, TerminatedTheWorkersGiveTheirTrialsBack) {
  Store store(folder.path(), true);
  fill(store, fake_study(4, 40, 10));
  const pid_t mpirun = start(folder.path(), true);
  ASSERT_GT(busy_worker(store), 0) << said();
  ::kill(mpirun, SIGTERM);
  wait_for(mpirun, "mpirun");
  store.reclaim();  // what mpirun did not let finish is freed, because its process has ended
  EXPECT_EQ(store.counts().running, 0);
  EXPECT_EQ(store.counts().failed, 0);
  EXPECT_GT(store.counts().pending, 0);
}

}  // namespace
}  // namespace rankscope::test
