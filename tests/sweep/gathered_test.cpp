#include "sweep/gathered.h"

#include <gtest/gtest.h>

#include "sweep/fake_store.h"

namespace rankscope::test {
namespace {

// A store of the fake study in which the trials of `done` are finished with `value`.
void make_store(const std::filesystem::path& folder, const Study& study, const std::vector<size_t>& done,
                double value) {
  Store store(folder, true);
  fill(store, study);
  const std::vector<std::string> all = ids(store, TrialState::pending);
  for (const size_t i : done) {
    store.claim({all[i]}, "me", "cpu", 100);
    store.finish(all[i], "me", {false, "", {{"test_mse", value}}, "fp32"}, 2);
  }
}

TEST(Gathered, AFinishedRowOfATrialIsKeptAndTheFirstOfThem) {
  const TempFolder folder;
  const Study study = fake_study(1, 5, 0);
  make_store(folder / "a", study, {0, 1}, 0.25);
  make_store(folder / "b", study, {1, 2}, 0.75);
  const Gathered all = gather({folder / "a", folder / "b"}, {});
  ASSERT_EQ(all.trials.size(), 4u);
  EXPECT_EQ(all.repeated, 4u);
  EXPECT_EQ(all.trials[0].values.at("test_mse"), 0.25);
  EXPECT_EQ(all.trials[1].values.at("test_mse"), 0.25);  // both have finished it
  EXPECT_EQ(all.trials[2].values.at("test_mse"), 0.75);  // only the second has
  EXPECT_EQ(all.trials[3].state, TrialState::pending);
  ASSERT_EQ(all.notes.size(), 1u);
  EXPECT_EQ(all.notes[0],
            "1 of 4 repeated rows have other results: test_mse of " + all.trials[1].id + " is 0.25 and 0.75");
}

TEST(Gathered, AnotherVersionOfTheStudyIsNamed) {
  const TempFolder folder;
  make_store(folder / "a", fake_study(1, 5, 0), {0}, 0.25);
  make_store(folder / "b", fake_study(1, 5, 0), {0}, 0.25);
  EXPECT_TRUE(gather({folder / "a", folder / "b"}, {}).notes.empty());
  make_store(folder / "c",
             parse_study(fake_study(1, 5, 0).source + "y = \"best_test_mse\"\n", "fake", "fake.toml"), {0},
             0.25);
  ASSERT_EQ(gather({folder / "a", folder / "c"}, {}).notes.size(), 1u);
  EXPECT_NE(gather({folder / "a", folder / "c"}, {}).notes[0].find("holds another version of the study"),
            std::string::npos);
}

TEST(Gathered, FoldersOfTwoStudiesAreNotOneTable) {
  const TempFolder folder;
  Study other = fake_study(1, 5, 0);
  other.name = "other";
  make_store(folder / "a", fake_study(1, 5, 0), {0}, 0.25);
  make_store(folder / "b", other, {0}, 0.25);
  EXPECT_EQ(error_of([&] {
              gather({folder / "a", folder / "b"}, {});
            }).message(),
            "this folder holds the study other, not fake");
}

TEST(Gathered, TablesOfAStudyThatNobodyKnowsAskForItsStore) {
  const TempFolder folder;
  make_store(folder / "a", fake_study(1, 5, 0), {0}, 0.25);
  export_store(Store(folder / "a"), folder / "tables", "csv");
  const Error error = error_of([&] { gather({folder / "tables"}, {&fake_runner()}); });
  EXPECT_EQ(error.message(), "these are tables of the study \"fake\", which is not a built-in one");
}

}  // namespace
}  // namespace rankscope::test
