#include "base/suggest.h"

#include <gtest/gtest.h>

namespace rankscope {
namespace {

TEST(EditDistance, CountsEditsAndAdjacentSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("stabel", "stable"), 1u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
}

TEST(EditDistance, IsSymmetric) {
  EXPECT_EQ(edit_distance("entropy", "trophy"), edit_distance("trophy", "entropy"));
}

TEST(Nearest, PutsTheNearestFirstAndKeepsTheOrderOfTies) {
  EXPECT_EQ(nearest("ab", {"xyz", "ac", "ad", "ab"}, 3), (std::vector<std::string>{"ab", "ac", "ad"}));
}

TEST(Nearest, PutsNamesThatAreOnlyBegunFirst) {
  EXPECT_EQ(nearest("resid", {"read", "residual", "dead"}, 2),
            (std::vector<std::string>{"residual", "read"}));
  EXPECT_EQ(nearest("re", {"ra", "residual"}, 1), (std::vector<std::string>{"ra"}));  // too short to say
}

TEST(Nearest, GivesNoMoreThanThereAre) { EXPECT_EQ(nearest("x", {"y"}, 5).size(), 1u); }

TEST(Nearest, DoesNotChokeOnAnEnormousName) {
  EXPECT_EQ(nearest(std::string(10'000'000, 'a'), {"a"}, 1).size(), 1u);
}

TEST(ToCopy, LeavesToTheReaderWhatAShellOrPythonWouldCarryOut) {
  EXPECT_EQ(to_copy("models/bert-base_v1.2", "FOLDER"), "models/bert-base_v1.2");
  for (const char* name : {"", "-rf", "a b", "a'); import os; ('", "$(reboot)", "`reboot`", "a;b", "a\"b",
                           "a\nb", "a|b", "a>b", "a&b", "~x", "*", "a\\b", "\u00e4"})
    EXPECT_EQ(to_copy(name, "FOLDER"), "FOLDER") << name;
}

}  // namespace
}  // namespace rankscope
