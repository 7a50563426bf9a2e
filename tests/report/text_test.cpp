#include "report/text.h"

#include <gtest/gtest.h>

#include <set>

#include "base/table.h"

namespace rankscope {
namespace {

TEST(TerminalText, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("é"), 1);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("🙂"), 2);
  EXPECT_EQ(display_width("▁▇"), 2);
}

TEST(TerminalText, FittingNeverSplitsACharacter) {
  EXPECT_EQ(fit("日本", 3), "日");
  EXPECT_EQ(fit("aéb", 2), "aé");
  EXPECT_EQ(fit("abc", 10), "abc");
}

TEST(TerminalText, PaddingIsExactAndCutsWhatIsTooLong) {
  EXPECT_EQ(pad_right("ab", 4), "ab  ");
  EXPECT_EQ(pad_left("ab", 4), "  ab");
  EXPECT_EQ(pad_right("abcdef", 4), "abc~");
  EXPECT_EQ(display_width(pad_right("日本語", 4)), 4);
}

using Names = std::vector<std::string>;

TEST(TerminalText, ALongNameLosesItsMiddle) {
  EXPECT_EQ(short_names({"full", "replace:softmax=sigmoid@L5"}, 15), (Names{"full", "replace~moid@L5"}));
  EXPECT_EQ(short_names({"full", "-skip"}, 15), (Names{"full", "-skip"}));
  EXPECT_TRUE(short_names({}, 15).empty());
}

TEST(TerminalText, NamesThatDifferStayDifferentWhereverTheyDiffer) {
  const auto all_differ = [](const Names& names, int width) {
    const Names cut = short_names(names, width);
    for (const std::string& name : cut) EXPECT_LE(display_width(name), width) << name;
    EXPECT_EQ(std::set<std::string>(cut.begin(), cut.end()).size(), names.size());
  };
  const std::string control = "replace:softmax=shifted_control:nats=2,to=";
  all_differ({"full", control + "nothing", control + "uniform", control + "random"}, 26);
  all_differ({"replace:softmax=prefix_normalised@L1-2", "replace:softmax=prefix_normalised@L3"}, 26);
  all_differ({"rank:a" + std::string(40, 'x'), "rank:b" + std::string(40, 'x')}, 8);
  const std::string end(14, 'x');  // longer than the half that is kept first
  all_differ({std::string(30, 'x') + "1" + end, std::string(30, 'x') + "2" + end}, 17);
  all_differ({"日本語日本語日本語一", "日本語日本語日本語二"}, 7);
}

TEST(TerminalText, NamesThatNoCutTellsApartGetMoreRoom) {
  const Names names{"a---------b", "a---------c", "z---------b", "z---------c"};
  EXPECT_EQ(short_names(names, 2), (Names{"a~b", "a~c", "z~b", "z~c"}));
  const Names same{"twice the same", "twice the same"};  // which no room tells apart
  EXPECT_EQ(short_names(same, 5), (Names{"tw~me", "tw~me"}));
}

TEST(TerminalText, NamesOfAnybodysTableGetNoMoreThanALine) {
  for (const int count : {2, 100}) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i)
      names.push_back(std::string(2000, 'a') + std::to_string(i) + std::string(2000, 'b'));
    for (const std::string& name : short_names(names, 40)) EXPECT_LE(display_width(name), 160);
  }
}

TEST(TerminalText, LinesBreakAtSpaces) {
  EXPECT_EQ(wrap("the skip holds the rank up", 10),
            (std::vector<std::string>{"the skip", "holds the", "rank up"}));
  EXPECT_TRUE(wrap("", 10).empty());
  EXPECT_TRUE(wrap("   ", 10).empty());
}

TEST(TerminalText, AWordLongerThanALineIsCut) {
  EXPECT_EQ(wrap("a bcdefghij k", 4), (std::vector<std::string>{"a", "bcde", "fghi", "j k"}));
}

TEST(TerminalText, HostileTextIsShownNotObeyed) {
  EXPECT_EQ(terminal_text("\x1b[2Jx"), "\\x1b[2Jx");
  EXPECT_EQ(terminal_text("a\u202Eb"), "a\\u202eb");
  EXPECT_EQ(terminal_text("\xff"), "\\xff");
  EXPECT_EQ(terminal_text("naïve"), "naïve");
}

TEST(TerminalText, ASparklineRunsFromZeroToOne) {
  const std::vector<double> x{0, 0.5, 1, kNone, 7, -3};
  EXPECT_EQ(sparkline(x, 10, true), "▁▅█ █▁");
  EXPECT_EQ(sparkline(x, 10, false), "_=# #_");
}

TEST(TerminalText, ALongSparklineAveragesGroups) {
  std::vector<double> x(50, 0.0);
  x.resize(100, 1.0);
  EXPECT_EQ(sparkline(x, 4, true), "▁▁██");
  EXPECT_EQ(sparkline({}, 4, true), "");
}

TEST(TerminalText, NumbersHaveThreeSignificantDigits) {
  EXPECT_EQ(number_text(12345.4), "12345");
  EXPECT_EQ(number_text(-1.5e6), "-1.5e+06");
  EXPECT_EQ(number_text(0.41234), "0.412");
  EXPECT_EQ(number_text(2.1e-7), "2.1e-07");
  EXPECT_EQ(number_text(123.4), "123");
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(kNone), "-");
}

}  // namespace
}  // namespace rankscope
