#include "report/text.h"

#include <gtest/gtest.h>

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
