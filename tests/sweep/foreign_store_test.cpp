// Stores that somebody else made or moved: data from outside like any other.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "report/study_results.h"
#include "sweep/fake_store.h"
#include "sweep/schedule.h"
#include "sweep/sqlite.h"
#include "sweep/tables.h"
#include "sweep/tensorboard.h"

namespace rankscope::test {
namespace {

namespace fs = std::filesystem;

void change(const fs::path& store, const std::string& sql) {
  sqlite3* db = open_database(store / "study.db", false);
  execute(db, store / "study.db", sql.c_str());
  close_database(db);
}

// As somebody else's program would: without our limits.
void change_freely(const fs::path& store, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((store / "study.db").c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

class ForeignStore : public testing::Test {
 protected:
  ForeignStore() {
    fs::create_directories(root);
    Store store(root, true);
    fill(store, fake_study(1, 5, 0));
    id = store.trials().front().id;
    fs::create_directories(elsewhere);
    put(elsewhere / "result.json", "precious");
  }
  std::string fault_of_a_run() {
    return error_of([&] {
             Store store(root);
             run_study(store, fake_runner(), {}, {});
           })
        .message();
  }
  void expect_elsewhere_untouched() {
    EXPECT_EQ(get(elsewhere / "result.json"), "precious");
    EXPECT_EQ(files_in(elsewhere), 1u);
  }

  const TempFolder folder;
  const fs::path root = folder / "store", elsewhere = folder / "elsewhere";
  std::string id;
};

TEST_F(ForeignStore, AnIdThatIsAPathIsRefusedAndNothingIsWrittenThere) {
  for (const std::string& name : {std::string("../../elsewhere"), elsewhere.string(), std::string(".."),
                                  std::string(""), std::string("0123456789abcdeF")}) {
    change(root, fmt::format("UPDATE trials SET id = '{}' WHERE number = 1", name));
    EXPECT_EQ(fault_of_a_run(), fmt::format("a trial has the id \"{}\", which is none", name));
    EXPECT_EQ(error_of([&] { Store(root).trial_folder(name); }).message(),
              fmt::format("a trial has the id \"{}\", which is none", name));
    expect_elsewhere_untouched();
  }
}

TEST_F(ForeignStore, AFolderThatIsALinkIsNotWrittenThrough) {
  fs::create_directory_symlink(elsewhere, root / "trials" / id);
  EXPECT_EQ(fault_of_a_run(), "a link or a file in place of a folder stands where a store has none");
  expect_elsewhere_untouched();
  fs::remove(root / "trials" / id);
  fs::remove(root / "trials");
  fs::create_directory_symlink(elsewhere, root / "trials");
  EXPECT_EQ(fault_of_a_run(), "a link or a file in place of a folder stands where a store has none");
  expect_elsewhere_untouched();
  EXPECT_EQ(Store(root).counts().pending, 4);  // nothing was claimed
}

TEST_F(ForeignStore, AFileOfATrialThatIsALinkOrAPipeIsRefused) {
  fs::create_directories(root / "trials" / id);
  fs::create_symlink(elsewhere / "result.json", root / "trials" / id / "curve.jsonl");
  EXPECT_EQ(fault_of_a_run(), "a link stands where a store has none");
  expect_elsewhere_untouched();
  fs::remove(root / "trials" / id / "curve.jsonl");
  ASSERT_EQ(::mkfifo((root / "trials" / id / "curve.jsonl").c_str(), 0600), 0);
  EXPECT_EQ(fault_of_a_run(), "something that is no file stands where a store has none");
}

TEST_F(ForeignStore, ADatabaseBehindALinkIsNotOpened) {
  fs::rename(root / "study.db", elsewhere / "result.json");
  fs::create_symlink(elsewhere / "result.json", root / "study.db");
  EXPECT_EQ(error_of([&] { Store store(root); }).message(), "this is not a regular file");
}

TEST_F(ForeignStore, ADatabaseOfAnotherProgramIsLeftAsItWas) {
  change(root, "DROP TABLE meta; PRAGMA journal_mode = DELETE");
  const std::string before = get(root / "study.db");
  EXPECT_EQ(error_of([&] { Store store(root); }).message(), "this database is not a store of trials");
  EXPECT_EQ(get(root / "study.db"), before);
}

TEST_F(ForeignStore, EventsAreNotWrittenThroughALink) {
  Store store(root);
  run_study(store, fake_runner(), {}, {});
  fs::create_directory_symlink(elsewhere, root / "tensorboard");
  EXPECT_EQ(error_of([&] { write_events(root, id, 1); }).message(),
            "a link or a file in place of a folder stands where a store has none");
  expect_elsewhere_untouched();
}

TEST_F(ForeignStore, ATriggerDoesNotRun) {
  change(root, "CREATE TRIGGER undo AFTER UPDATE ON trials BEGIN DELETE FROM trials; END");
  Store store(root);
  EXPECT_EQ(run_study(store, fake_runner(), {}, {}).done, 4);
  expect_all_done_and_right(store);
}

TEST_F(ForeignStore, OneThatIsMovedWhileItRunsEndsTheRunAndNothingLandsInTheOldPlace) {
  const fs::path there = folder / "there";
  {
    Store store(root);
    bool moved = false;
    const Error e = error_of([&] {
      run_study(store, fake_runner(), {}, [&](const SweepProgress& p) {
        if (p.trials_done != 1 || moved) return;
        fs::rename(root, there);
        moved = true;
      });
    });
    EXPECT_EQ(e.message(),
              "the store was moved or removed while it was in use; what was finished before is kept");
    EXPECT_FALSE(fs::exists(root));
  }
  Store store(there);
  EXPECT_EQ(store.counts().done, 1);
  EXPECT_EQ(store.counts().pending, 3);  // given back, none failed
  for (const std::string& done : ids(store, TrialState::done))
    EXPECT_TRUE(fs::exists(store.trial_folder(done) / "result.json"));
  run_study(store, fake_runner(), {}, {});
  expect_all_done_and_right(store);
}

TEST_F(ForeignStore, OneThatIsMovedStopsALongTrialAtTheNextHeartbeat) {
  const fs::path there = folder / "there", slow = folder / "slow";
  Store store(slow, true);
  fill(store, fake_study(1, 100'000, 1));  // longer than the test may take
  SweepOptions options;
  options.lease_seconds = 0.4;
  bool moved = false;
  const Error e = error_of([&] {
    run_study(store, fake_runner(), options, [&](const SweepProgress&) {
      if (!moved) fs::rename(slow, there);
      moved = true;
    });
  });
  EXPECT_TRUE(e.message().starts_with("the store was moved")) << e.message();
  EXPECT_FALSE(fs::exists(slow));
}

// What nobody may write to can be shown all the same. Root may write everywhere: its child is somebody else.
TEST_F(ForeignStore, OneThatCannotBeWrittenToCanBeLookedAt) {
  constexpr fs::perms kAllRead = fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read;
  constexpr fs::perms kAllEnter = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  const std::string before = get(root / "study.db");
  fs::permissions(folder.path(), fs::perms::owner_write | kAllRead | kAllEnter);
  fs::permissions(root / "study.db", kAllRead);
  fs::permissions(root, kAllRead | kAllEnter);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(3);
    try {
      const Store store = Store::look_at(root);
      ::_exit(store.counts().pending == 4 && store.study().title == "Fake" && store.trials().size() == 4 ? 0
                                                                                                         : 2);
    } catch (const std::exception& e) {
      std::fputs(e.what(), stderr);
      ::_exit(1);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  fs::permissions(root, fs::perms::owner_all);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(get(root / "study.db"), before);
}

// Killed while the tables were made: what is half done lies in a journal, which only a writer can put right.
TEST_F(ForeignStore, OneWhoseWriterWasKilledHalfWayCanBeLookedAt) {
  change(root, "PRAGMA journal_mode = DELETE");
  const pid_t child = ::fork();
  if (child == 0) {
    sqlite3* db = open_database(root / "study.db", false);
    execute(db, root / "study.db",
            "PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE trials SET reason = hex(randomblob(20000))");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(fs::exists(root / "study.db-journal"));
  const Store store = Store::look_at(root);
  ASSERT_EQ(store.trials().size(), 4u);
  EXPECT_EQ(store.trials().front().reason, "");
}

// The end of a journal may name a file, which SQLite removes when it has put the database right.
TEST_F(ForeignStore, AJournalThatNamesAFileToRemoveIsRefused) {
  const std::string victim = (elsewhere / "result.json").string();
  const std::string mark = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  const auto number = [](uint64_t n) {
    std::string out;
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(n >> shift & 0xFF);
    return out;
  };
  uint64_t sum = 0;
  for (const unsigned char c : victim) sum += c;
  constexpr uint64_t kSector = 512, kPage = 4096, kLockedByte = 1 << 30;
  std::string journal = mark + number(0) + number(0) + number(fs::file_size(root / "study.db") / kPage) +
                        number(kSector) + number(kPage);
  journal.resize(kSector, '\0');
  put(root / "study.db-journal",
      journal + number(kLockedByte / kPage + 1) + victim + number(victim.size()) + number(sum) + mark);
  const auto refused = [](auto&& open) { return error_of(open).message(); };
  const std::string why = "this journal names another file, which would be removed";
  EXPECT_EQ(refused([&] { Store::look_at(root); }), why);
  EXPECT_EQ(refused([&] { Store store(root); }), why);
  EXPECT_EQ(refused([&] { Store store(root, true); }), why);
  expect_elsewhere_untouched();
}

TEST_F(ForeignStore, AJournalThatIsAPipeIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo((root / "study.db-journal").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { Store::look_at(root); }).message(), "this is not a regular file");
}

TEST_F(ForeignStore, AValueLargerThanAnyOfOursIsRefusedBeforeItTakesMemory) {
  change_freely(root, "UPDATE trials SET reason = hex(zeroblob(10000000)) WHERE number = 1");
  EXPECT_EQ(error_of([&] { Store::look_at(root).trials(); }).message(), "the store: string or blob too big");
}

// What is computed as it is read is not in the file: a few bytes of it can fill the memory.
TEST_F(ForeignStore, ATableWhoseColumnsAreComputedIsRefused) {
  change_freely(
      root,
      "ALTER TABLE trials RENAME COLUMN reason TO was; ALTER TABLE trials ADD COLUMN reason TEXT AS "
      "(hex(zeroblob(10)))");
  EXPECT_EQ(error_of([&] { Store::look_at(root); }).message(), "the tables of this store are not plain ones");
}
TEST_F(ForeignStore, ATableThatIsAViewIsRefused) {
  change_freely(root, "ALTER TABLE trials RENAME TO others; CREATE VIEW trials AS SELECT * FROM others");
  EXPECT_EQ(error_of([&] { Store::look_at(root); }).message(), "the tables of this store are not plain ones");
}

// The default of a column is in the file once, and in every row that was there before it.
TEST_F(ForeignStore, RowsThatShareOneLargeTextAreRefusedBeforeTheyTakeMemory) {
  constexpr int kRows = 20, kBytes = 15'000'000;
  std::string sql = "ALTER TABLE trials RENAME COLUMN reason TO was;";
  for (int i = 0; i < kRows; ++i)
    sql += fmt::format("INSERT INTO trials (id, study, runner, config) VALUES ('{:016x}', 's', 'r', '{{}}');",
                       i);
  change_freely(root, sql + "ALTER TABLE trials ADD COLUMN reason TEXT NOT NULL DEFAULT '" +
                          std::string(kBytes, 'x') + "'");
  ASSERT_LT(fs::file_size(root / "study.db"), 2u * kBytes);
  EXPECT_EQ(error_of([&] { Store::look_at(root).trials(); }).message(),
            "its trials hold more than 256 MiB of text");
}

TEST_F(ForeignStore, AConfigurationThatIsNoneIsToldByItsTrial) {
  change(root, "UPDATE trials SET config = '{bad' WHERE number = 1");
  const Error e = error_of([&] { Store(root).reclaim(); });
  EXPECT_EQ(e.message(), "this is not valid JSON");
  EXPECT_EQ(e.place(), (root / "study.db").string() + ", configuration of the trial " + id);
}

TEST_F(ForeignStore, ATextThatIsNotUtf8IsExportedAllTheSame) {
  change(root, "UPDATE trials SET reason = CAST(x'ff41' AS TEXT)");
  export_store(Store::look_at(root), folder / "tables", "jsonl");
  EXPECT_NE(get(folder / "tables" / "trials.jsonl").find("\uFFFDA"), std::string::npos);
}

TEST_F(ForeignStore, ACurveBehindALinkIsNotShown) {
  const StudyTables tables = study_tables(Store::look_at(root));
  fs::create_directories(root / "trials" / id);
  put(elsewhere / "curve.jsonl", "{\"step\":1,\"loss\":42}\n");
  fs::create_symlink(elsewhere / "curve.jsonl", root / "trials" / id / "curve.jsonl");
  const std::string why = "a link or a pipe stands among the results";
  EXPECT_EQ(error_of([&] { study_results(tables, root); }).message(), why);
  fs::remove_all(root / "trials" / id);
  fs::create_directory_symlink(elsewhere, root / "trials" / id);
  EXPECT_EQ(error_of([&] { study_results(tables, root); }).message(), why);
}

TEST_F(ForeignStore, TablesAreWrittenOverTablesOfOursAndNoOthers) {
  const fs::path there = folder / "tables";
  for (const char* name : {"summary.csv", "published.csv", "study.json", "trials.csv", "trials.jsonl"}) {
    fs::remove_all(there);
    fs::create_directories(there);
    put(there / name, "{\"mine\": 1}\n");
    EXPECT_EQ(error_of([&] { export_store(Store(root), there, "csv"); }).message(),
              fmt::format("the {} in this folder is not one of rankscope's", name));
    EXPECT_EQ(get(there / name), "{\"mine\": 1}\n");
    EXPECT_EQ(files_in(there), 1u);
  }
  fs::remove_all(there);
  for (const char* format : {"csv", "jsonl", "csv", "jsonl"})
    EXPECT_NO_THROW(export_store(Store(root), there, format));
  fs::remove(there / "study.json");  // as a kill may leave it
  EXPECT_NO_THROW(export_store(Store(root), there, "csv"));
}

TEST_F(ForeignStore, AStudyWithoutAPrintableNameIsRefused) {
  change(root, "UPDATE meta SET value = char(27) || '[2J' WHERE key = 'study'");
  EXPECT_EQ(error_of([&] { Store::look_at(root).study(); }).message(),
            "the study of this store has the name \"\\x1b[2J\", which is none");
}

// SQLite may read such a name as an address, and would put the database elsewhere.
TEST_F(ForeignStore, AFolderWhoseNameBeginsLikeAnAddressIsAFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  { Store store("file:there", true); }
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(folder / "file:there" / "study.db"));
}

TEST_F(ForeignStore, LookingChangesNothing) {
  const Store store = Store::look_at(root);
  EXPECT_EQ(store.counts().pending, 4);
  EXPECT_FALSE(error_of([&] { const_cast<Store&>(store).retry(); }).message().empty());
}

TEST_F(ForeignStore, AStoreThatWasStoppedBeforeItHadTablesSaysSoAndIsMadeByTheNextRun) {
  std::filesystem::create_directories(root / "early");
  std::ofstream(root / "early" / "study.db").close();
  EXPECT_EQ(error_of([&] { Store store(root / "early"); }).message(),
            "nothing is in the store yet: it is being made, or was stopped before it was");
  EXPECT_NO_THROW(Store(root / "early", true));
  EXPECT_NO_THROW(Store(root / "early", false));
}

}  // namespace
}  // namespace rankscope::test
