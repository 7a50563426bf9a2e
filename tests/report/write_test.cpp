#include "report/write.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "tables.h"

namespace rankscope {
namespace {
namespace fs = std::filesystem;

class WriteResults : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rankscope-write-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    add_variant(table_, "full", 4, 0.1, 0.0);
    table_.samples.push_back({"full", "hook_embed", -1, -1, "token_cosine", "all", 3, 0.5});
  }
  void TearDown() override { fs::remove_all(folder_); }

  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
  ResultTable table_;
  Json manifest_ = {{"version", "0.1.0"}};
};

// A write past this many bytes fails as it would on a full disk.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(WriteResults, MakesTheFolderAndItsParents) {
  write_results(folder_ / "a" / "b", {table_, {}, {}, manifest_});
  for (const char* name : {"metrics.csv", "samples.csv", "report.html", "manifest.json"})
    EXPECT_TRUE(fs::is_regular_file(folder_ / "a" / "b" / name)) << name;
  Json manifest = Json::parse(read_file(folder_ / "a" / "b" / "manifest.json"));
  EXPECT_EQ(manifest["verdict"], Json::array());
  manifest.erase("verdict");
  EXPECT_EQ(manifest, manifest_);
}

TEST_F(WriteResults, ReplacesEarlierResultsAndLeavesOtherFilesAlone) {
  std::ofstream(folder_ / "metrics.csv") << "old";
  std::ofstream(folder_ / "mine.txt") << "mine";
  write_results(folder_, {table_, {}, {}, manifest_});
  EXPECT_EQ(read_file(folder_ / "metrics.csv").substr(0, 13), "variant,site,");
  EXPECT_EQ(read_file(folder_ / "mine.txt"), "mine");
  EXPECT_EQ(files(), 5u);
}

TEST_F(WriteResults, AFullDiskLeavesNothingThatLooksWhole) {
  const SmallDisk disk(1000);
  EXPECT_THROW(write_results(folder_, {table_, {}, {}, manifest_}), Error);
  EXPECT_EQ(files(), 0u);
}

TEST_F(WriteResults, AFullDiskKeepsTheEarlierResults) {
  write_results(folder_, {table_, {}, {}, manifest_});
  const std::string before = read_file(folder_ / "metrics.csv");
  add_variant(table_, "-skip", 4, 0.2, 1.0);
  const SmallDisk disk(before.size() + 10);
  EXPECT_THROW(write_results(folder_, {table_, {}, {}, manifest_}), Error);
  EXPECT_EQ(read_file(folder_ / "metrics.csv"), before);
  EXPECT_EQ(files(), 4u);
}

TEST_F(WriteResults, WhatElseIsWrittenMayFailAndLeavesNothing) {
  EXPECT_THROW(write_results(folder_ / "new", {table_, {}, {}, manifest_}, [] { throw Error("full"); }),
               Error);
  EXPECT_EQ(files(), 0u);
}

TEST_F(WriteResults, AFolderThatStaysEmptyGoesAgain) {
  { const ResultFolder made(folder_ / "a" / "b"); }
  EXPECT_EQ(files(), 0u);
  {
    const ResultFolder made(folder_ / "a" / "b");
    std::ofstream(folder_ / "a" / "b" / "mine.txt") << "mine";
  }
  EXPECT_TRUE(fs::exists(folder_ / "a" / "b" / "mine.txt"));
}

TEST_F(WriteResults, AFileInTheWayIsNamed) {
  std::ofstream(folder_ / "taken") << "x";
  try {
    write_results(folder_ / "taken", {table_, {}, {}, manifest_});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.place(), (folder_ / "taken").string());
    EXPECT_EQ(error.advice(), "choose another --out");
  }
}

// What report/ takes in place of scan's ScanResult, which it does not know.
struct AnyScan {
  struct Finding {
    std::string topic, sentence;
    bool known = true;
    int layer = -1, head = -1;
    double value = kNone, baseline = kNone, threshold = kNone;
  };
  ResultTable table;
  std::vector<Finding> verdict;
  std::vector<std::string> notes;
  Json manifest;
};

TEST_F(WriteResults, AScanIsAResult) {
  AnyScan scan{table_, {AnyScan::Finding()}, {"a note"}, manifest_};
  scan.verdict[0].sentence = "a sentence";
  const Results results = scan;
  ASSERT_EQ(results.verdict.size(), 1u);
  EXPECT_EQ(results.verdict[0].text, "a sentence");
  EXPECT_EQ(results.notes[0], "a note");
  write_results(folder_, scan);
  EXPECT_EQ(files(), 4u);
}

}  // namespace
}  // namespace rankscope
