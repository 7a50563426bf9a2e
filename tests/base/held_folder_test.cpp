#include "base/held_folder.h"

#include <gtest/gtest.h>

#include "base/test_support.h"

namespace rankscope::test {
namespace {

namespace fs = std::filesystem;

TEST(HeldFolder, MakesFoldersStepByStepAndFindsThemAgain) {
  const TempFolder folder;
  const HeldFolder held(folder.path());
  EXPECT_EQ(held.make({"a", "b"}), folder / "a/b");
  EXPECT_EQ(held.make({"a", "b"}), folder / "a/b");
  put(folder / "a/b/file", "x");
  EXPECT_TRUE(held.has_file({"a", "b", "file"}));
  EXPECT_FALSE(held.has_file({"a", "b"}));
  EXPECT_FALSE(held.has_file({"a", "c", "file"}));
}

TEST(HeldFolder, ANameIsOneStep) {
  const TempFolder folder;
  const HeldFolder held(folder.path());
  for (const char* name : {"", ".", "..", "a/b", "/tmp"}) {
    EXPECT_TRUE(error_of([&] { held.make({name}); }).message().ends_with("is no name of a file")) << name;
    EXPECT_TRUE(error_of([&] { held.has_file({name}); }).message().ends_with("is no name of a file")) << name;
  }
}

TEST(HeldFolder, NoLinkIsFollowed) {
  const TempFolder folder, outside;
  put(outside / "file", "x");
  fs::create_directory_symlink(outside.path(), folder / "link");
  fs::create_symlink(outside / "file", folder / "file");
  const HeldFolder held(folder.path());
  EXPECT_EQ(error_of([&] {
              held.make({"link", "new"});
            }).message(),
            "a link or a file in place of a folder stands where a store has none");
  EXPECT_FALSE(fs::exists(outside / "new"));
  EXPECT_FALSE(held.has_file({"link", "file"}));
  EXPECT_FALSE(held.has_file({"file"}));
}

TEST(HeldFolder, KnowsWhenItIsNoLongerWhereItWas) {
  const TempFolder folder;
  fs::create_directory(folder / "here");
  const HeldFolder held(folder / "here");
  EXPECT_TRUE(held.still_at_its_path());
  fs::rename(folder / "here", folder / "there");
  EXPECT_FALSE(held.still_at_its_path());
  fs::create_directory(folder / "here");  // another one of that name
  EXPECT_FALSE(held.still_at_its_path());
}

}  // namespace
}  // namespace rankscope::test
