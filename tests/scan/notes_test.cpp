// What a scan says beside its numbers: that an input is not what it seems, and why something was not
// measured.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "pass/input.h"
#include "scan/fixture_request.h"

namespace rankscope {
namespace {

// A window of 4: every query but the first sees several keys, and no key is seen by a quarter of the queries.
TEST(Notes, SayWhyNoMarginWasMeasured) {
  ScanRequest request = test::random_tokens_through("mistral", 1, 64);
  request.off = {"length"};
  request.lenses = {"margins"};
  const ScanResult r = scan(request, {});
  EXPECT_EQ(std::count(r.notes.begin(), r.notes.end(),
                       "--off length: no sink_margin was measured, as in no pattern a quarter of the queries "
                       "that have a choice (two at least) see one and the same key"),
            1);
}

TEST(Notes, SamplesOfOneTokenAreNotHalved) {
  const auto file = std::filesystem::path(testing::TempDir()) / fmt::format("one-{}.txt", ::getpid());
  write_file(file, "2\n5 6 7 8 9 10 11 12\n12 11 10 9 8 7 6 5\n");
  ScanRequest request = test::random_tokens_through("bert", 3, 64);
  request.random_tokens = false;
  request.token_ids = file;
  request.off = {"length"};
  request.thresholds.set("few_tokens", 0);
  const ScanResult r = scan(request, {});
  std::filesystem::remove(file);
  EXPECT_EQ(
      std::count(r.notes.begin(), r.notes.end(),
                 "--off length: half of the shortest sample has fewer than 1 tokens, so nothing was halved"),
      1);
}

class Padding : public testing::Test {
 protected:
  std::vector<std::string> notes(const std::string& fixture, const std::string& rows) {
    const auto file = std::filesystem::path(testing::TempDir()) / fmt::format("padded-{}.txt", ::getpid());
    write_file(file, rows);
    ScanRequest request;
    request.model = test::fixtures() / "models" / fixture;
    request.token_ids = file;
    ModelSpec spec;
    spec.embedding.vocabulary = 20;
    const ScanInput input = read_input(request, spec);
    std::filesystem::remove(file);
    return input.notes;
  }
};

TEST_F(Padding, AtTheEndOfRowsIsCounted) {
  EXPECT_EQ(
      notes("bert", "5 6 7 8\n9 10 0 0\n11 0 12 0\n"),
      std::vector<std::string>{"2 of 3 samples end in the config's padding token 0, 3 in all, and it is read "
                               "like any other: leave it out, samples may differ in length"});
  EXPECT_TRUE(notes("bert", "5 0 7 8\n").empty());
  EXPECT_TRUE(notes("falcon", "5 6 0 0\n").empty());  // its config names none
}

}  // namespace
}  // namespace rankscope
