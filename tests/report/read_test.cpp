#include "report/read.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "report/csv.h"
#include "report/write.h"
#include "support/temporary_folder.h"
#include "tables.h"

namespace rankscope {
namespace {

std::string csv(const ResultTable& table) {
  std::string out;
  write_metrics_csv(table, [&](std::string_view text) { out += text; });
  write_samples_csv(table, [&](std::string_view text) { out += text; });
  return out;
}

class ReadResults : public testing::Test {
 protected:
  void SetUp() override {
    add_variant(table_, "full", 3, 0.1, 0.0);
    add_variant(table_, "rank:qk=8,\"ov\"=4", 3, 0.2, 1e-300);
    table_.rows.push_back({"full", "x", 0, 1, "m", INFINITY, kNone, 3, -1, "all", "encoder"});
    table_.samples.push_back({"full", "hook_embed", -1, -1, "token_cosine", "content", 5, -0.125, "encoder"});
    write_results(folder_.path(),
                  {table_, {{"sink", "no head is a sink", false, 3, 4, 0.5, kNone, 0.3, false, true}}, {}, manifest_});
  }

  TemporaryFolder folder_;
  ResultTable table_;
  Json manifest_ = {{"schema", 2}, {"notes", {"a note"}}};
};

TEST_F(ReadResults, WhatWasWrittenReadsBackTheSame) {
  const SavedResults saved = read_results(folder_.path(), Samples::read);
  EXPECT_EQ(csv(saved.table), csv(table_));
  EXPECT_EQ(saved.manifest, manifest_);
  EXPECT_EQ(saved.notes, std::vector<std::string>{"a note"});
  ASSERT_EQ(saved.verdict.size(), 1u);
  EXPECT_EQ(saved.verdict[0].text, "no head is a sink");
  EXPECT_FALSE(saved.verdict[0].known);
  EXPECT_EQ(saved.verdict[0].head, 4);
  EXPECT_EQ(saved.verdict[0].threshold, 0.3);
  EXPECT_TRUE(std::isnan(saved.verdict[0].baseline));
  EXPECT_TRUE(saved.verdict[0].asked);
  EXPECT_EQ(saved.name, folder_.path().filename().string());
}

TEST_F(ReadResults, SamplesAreReadOnlyWhenAskedFor) {
  std::filesystem::remove(folder_.path() / "samples.csv");
  EXPECT_TRUE(read_results(folder_.path()).table.samples.empty());
  EXPECT_THROW(read_results(folder_.path(), Samples::read), Error);
}

TEST_F(ReadResults, OtherColumnsAreRefused) {
  std::ofstream(folder_.path() / "metrics.csv") << "a,b\n1,2\n";
  EXPECT_THROW(read_results(folder_.path()), Error);
}

TEST_F(ReadResults, ANewerSchemaIsRefused) {
  std::ofstream(folder_.path() / "manifest.json") << R"({"schema": 3})";
  EXPECT_THROW(read_results(folder_.path()), Error);
}

TEST(FolderName, IsWhatPeopleCallIt) {
  EXPECT_EQ(folder_name("out/tuned"), "tuned");
  EXPECT_EQ(folder_name("out/tuned/"), "tuned");
  EXPECT_EQ(folder_name("out/tuned/../base"), "base");
}

}  // namespace
}  // namespace rankscope
