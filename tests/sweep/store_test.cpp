#include "sweep/store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "sweep/fake_store.h"
#include "sweep/result.h"
#include "sweep/sqlite.h"

namespace rankscope::test {
namespace {

namespace fs = std::filesystem;

TEST(Store, TrialsAreAddedOnceAndKeepTheirOrder) {
  const TempFolder folder;
  Store store(folder.path(), true);
  const Study study = fake_study(2, 5, 0);
  const std::vector<Trial> all = trials(study, fake_runner(), {});
  EXPECT_EQ(store.add(study, all), 8);
  EXPECT_EQ(store.add(study, all), 0);
  const std::vector<StoredTrial> rows = store.trials();
  ASSERT_EQ(rows.size(), all.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].id, all[i].id);
    EXPECT_EQ(rows[i].config, canonical(all[i].config));
  }
}

TEST(Store, ANewOneCanBeOpenedByManyAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const TempFolder folder;
    std::atomic<int> opened = 0;
    std::barrier start(4);
    std::vector<std::jthread> all;
    for (int i = 0; i < 4; ++i)
      all.emplace_back([&] {
        start.arrive_and_wait();
        try {
          const Store store(folder.path() / "new", true);
          ++opened;
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      });
    all.clear();
    ASSERT_EQ(opened, 4) << "round " << round;
  }
}

TEST(Store, AClaimIsGrantedOnce) {
  const TempFolder folder;
  Store one(folder.path(), true);
  fill(one, fake_study(50, 5, 0));
  const std::vector<std::string> all = ids(one, TrialState::pending);
  std::vector<std::string> got[2];
  std::thread threads[2];
  for (int who = 0; who < 2; ++who)
    threads[who] = std::thread([&, who] {
      Store own(folder.path());
      for (const std::string& id : all)
        for (const std::string& mine : own.claim({id}, fmt::format("elsewhere:{}", who), "cpu", 100))
          got[who].push_back(mine);
    });
  for (std::thread& t : threads) t.join();
  std::set<std::string> together(got[0].begin(), got[0].end());
  together.insert(got[1].begin(), got[1].end());
  EXPECT_EQ(got[0].size() + got[1].size(), all.size());
  EXPECT_EQ(together.size(), all.size());
}

TEST(Store, ATrialWhoseLeaseIsOverIsReclaimedAndItsOwnerComesTooLate) {
  const TempFolder folder;
  Store store(folder.path(), true);
  fill(store, fake_study(1, 5, 0));
  const std::string id = ids(store, TrialState::pending).front();
  ASSERT_EQ(store.claim({id}, "far:1:2:3", "cpu", 100).size(), 1u);
  EXPECT_EQ(store.reclaim(), 0);  // a living lease
  EXPECT_EQ(store.renew("far:1:2:3", -1), 1);
  EXPECT_EQ(store.reclaim(), 1);
  EXPECT_FALSE(store.finish(id, "far:1:2:3", {false, "", {{"test_mse", 1.0}}}, 1));
  EXPECT_EQ(store.find(id)->state, TrialState::pending);
  EXPECT_EQ(store.find(id)->attempts, 1);
}

TEST(Store, AProcessOfThisMachineThatEndedNeedsNoLeaseToEnd) {
  EXPECT_TRUE(may_be_alive(owner_name()));
  EXPECT_TRUE(may_be_alive("far:1:2:3"));
  std::string ended = owner_name();  // the same pid, started at another time
  const size_t second = ended.find(':', ended.find(':') + 1);
  ended.replace(second + 1, ended.find(':', second + 1) - second - 1, "1");
  EXPECT_FALSE(may_be_alive(ended));
}

TEST(Store, AProcessThatEndedAndWasNotWaitedForIsNotAlive) {
  const std::string here = owner_name();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  const std::string owner = here.substr(0, here.find(':') + 1) + std::to_string(child) +
                            here.substr(here.find(':', here.find(':') + 1));
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT),
            0);  // ended, and still listed
  EXPECT_EQ(::kill(child, 0), 0);
  EXPECT_FALSE(may_be_alive(owner));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(Store, AResultThatReachedItsFolderCountsThoughTheRowWasLost) {
  const TempFolder folder;
  Store store(folder.path(), true);
  fill(store, fake_study(1, 5, 0));
  const StoredTrial trial = store.trials().front();
  fs::create_directories(store.trial_folder(trial.id));
  write_result(store.trial_folder(trial.id), trial.config, {{{"test_mse", 0.25}}, 3, "tf32"});
  store.reclaim();
  EXPECT_EQ(store.find(trial.id)->state, TrialState::done);
  EXPECT_EQ(store.find(trial.id)->precision, "tf32");
  EXPECT_EQ(store.find(trial.id)->values.at("test_mse"), 0.25);
}

TEST(Store, ACutOffResultDoesNotCount) {
  const TempFolder folder;
  Store store(folder.path(), true);
  fill(store, fake_study(1, 5, 0));
  const StoredTrial trial = store.trials().front();
  fs::create_directories(store.trial_folder(trial.id));
  write_result(store.trial_folder(trial.id), trial.config, {{{"test_mse", 0.25}}, 3});
  const fs::path file = store.trial_folder(trial.id) / "result.json";
  fs::resize_file(file, fs::file_size(file) / 2);
  store.reclaim();
  EXPECT_EQ(store.find(trial.id)->state, TrialState::pending);
}

TEST(Store, AValueThatIsNotFiniteComesBackAsNaN) {
  const auto back = parse_values(values_json({{"a", 0.1}, {"b", std::nan("")}}), "here");
  EXPECT_EQ(back.at("a"), 0.1);
  EXPECT_TRUE(std::isnan(back.at("b")));
}

TEST(Store, FailedTrialsAreRetriedAndOnlyThose) {
  const TempFolder folder;
  Store store(folder.path(), true);
  fill(store, fake_study(1, 5, 0));
  const std::vector<std::string> all = ids(store, TrialState::pending);
  store.claim({all[0], all[1]}, "me", "cpu", 100);
  EXPECT_TRUE(store.finish(all[0], "me", {true, "diverged", {}}, 1));
  EXPECT_TRUE(store.finish(all[1], "me", {false, "", {}}, 1));
  EXPECT_EQ(store.find(all[0])->reason, "diverged");
  EXPECT_EQ(store.retry(), 1);
  EXPECT_EQ(store.find(all[0])->state, TrialState::pending);
  EXPECT_EQ(store.find(all[1])->state, TrialState::done);
}

TEST(Store, OneFromBeforePrecisionWasKeptGoesOn) {
  const TempFolder folder;
  const Study study = fake_study(1, 5, 0);
  std::vector<std::string> all;
  {
    Store store(folder.path(), true);
    fill(store, study);
    all = ids(store, TrialState::pending);
    store.claim(all, "me", "cpu", 100);
    store.finish(all[0], "me", {false, "", {{"test_mse", 0.5}}}, 1);
    store.give_back("me");
  }
  sqlite3* db = open_database(folder / "study.db", false);
  execute(db, folder / "study.db", "ALTER TABLE trials DROP COLUMN precision");
  close_database(db);
  // A result without the word, too.
  put(folder / "trials" / all[1] / "result.json",
      fmt::format(R"({{"config":{},"values":{{"test_mse":0.75}},"seconds":2}})",
                  canonical(trials(study, fake_runner(), {})[1].config)));
  for (int twice = 0; twice < 2; ++twice) {
    Store store(folder.path());
    store.reclaim();
    EXPECT_EQ(store.find(all[0])->values.at("test_mse"), 0.5);
    EXPECT_EQ(store.find(all[0])->precision, "");
    EXPECT_EQ(store.find(all[1])->values.at("test_mse"), 0.75);
    EXPECT_EQ(store.find(all[1])->precision, "");
  }
  Store store(folder.path());
  store.claim({all[2]}, "me", "cpu", 100);
  EXPECT_TRUE(store.finish(all[2], "me", {false, "", {}, "fp32"}, 1));
  EXPECT_EQ(store.find(all[2])->precision, "fp32");
}

TEST(Store, AFolderWithoutAStudyIsRefused) {
  const TempFolder folder;
  EXPECT_EQ(error_of([&] { Store store(folder / "no"); }).message(),
            "there is no study in this folder: it has no study.db");
  EXPECT_FALSE(fs::exists(folder / "no"));
}

TEST(Store, AStoreFromANewerVersionIsRefusedUntouched) {
  const TempFolder folder;
  { Store store(folder.path(), true); }
  const std::string change =
      "sqlite3 " + (folder / "study.db").string() +
      " \"UPDATE meta SET value = '7' WHERE key = 'schema'; PRAGMA wal_checkpoint\" > /dev/null";
  if (std::system(change.c_str()) != 0) GTEST_SKIP() << "there is no sqlite3 program";
  EXPECT_EQ(error_of([&] { Store store(folder.path()); }).message(),
            "the store was written by a newer rankscope: schema 7, this one knows 1");
}

TEST(Store, ADamagedStoreIsNamedAndItsResultsComeBackFromTheFolders) {
  const TempFolder folder;
  const Study study = fake_study(40, 5, 0);
  std::string id;
  {
    Store store(folder.path(), true);
    fill(store, study);
    id = ids(store, TrialState::pending).front();
    store.claim({id}, "me", "cpu", 100);
    store.finish(id, "me", {false, "", {{"test_mse", 0.5}}}, 1);
  }
  std::string bytes = get(folder / "study.db");
  for (size_t i = 4096; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  put(folder / "study.db", bytes);
  EXPECT_TRUE(error_of([&] { Store store(folder.path()); }).message().starts_with("the store is damaged"));
  put(folder / "study.db", "this is not a database, and it is long enough to look at");
  const Error e = error_of([&] { Store store(folder.path()); });
  EXPECT_TRUE(e.message().starts_with("the store is damaged")) << e.message();
  EXPECT_TRUE(e.advice().starts_with("move study.db away")) << e.advice();
  fs::remove(folder / "study.db");
  Store store(folder.path(), true);
  fill(store, study);
  store.reclaim();
  EXPECT_EQ(store.counts().done, 1);
  EXPECT_EQ(store.find(id)->values.at("test_mse"), 0.5);
}

TEST(Store, HoldsOneStudy) {
  const TempFolder folder;
  Store store(folder.path(), true);
  Study study = fake_study(1, 5, 0);
  store.keep_study(study);
  EXPECT_EQ(store.study().title, "Fake");
  EXPECT_EQ(store.study().defaults, Config{});
  study.defaults = {{"attention", std::string("softmax")}, {"heads", int64_t{0}}};
  store.keep_study(study);
  EXPECT_EQ(store.study().defaults, study.defaults);
  study.name = "other";
  EXPECT_EQ(error_of([&] { store.keep_study(study); }).message(),
            "this folder holds the study fake, not other");
}

}  // namespace
}  // namespace rankscope::test
