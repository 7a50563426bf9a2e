#include "base/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rankscope {
namespace {

const std::string kClear = "\r\x1b[K";

TEST(Progress, SaysHowFarHowFastAndHowLong) {
  std::ostringstream out;
  double now = 0;
  {
    Progress progress(out, true, 80, [&] { return now; });
    now = 10;
    progress.update(20, 120, "layer 3");
    EXPECT_EQ(out.str(), kClear + " 16%  20/120  2/s  50s left  layer 3");
  }
  EXPECT_TRUE(out.str().ends_with(kClear));
}

TEST(Progress, WorkInUnequalPiecesIsAFraction) {
  std::ostringstream out;
  double now = 0;
  Progress progress(out, true, 80, [&] { return now; });
  now = 10;
  progress.update(0.25, "4/15 trials");
  EXPECT_EQ(out.str(), kClear + " 25%  30s left  4/15 trials");
}

TEST(Progress, WritesNothingUnlessEnabled) {
  std::ostringstream out;
  {
    Progress progress(out, false);
    progress.update(1, 2, "x");
  }
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, RedrawsAtMostTenTimesASecond) {
  std::ostringstream out;
  double now = 0;
  Progress progress(out, true, 80, [&] { return now; });
  for (int i = 0; i < 1000; ++i) {
    now = i * 0.001;
    progress.update(i, 1000, "x");
  }
  EXPECT_LE(out.str().size(), 11 * 60u);
}

TEST(Progress, NeverFillsTheLineAndShowsHostileNamesAsText) {
  std::ostringstream out;
  Progress progress(out, true, 40, [] { return 0.0; });
  progress.update(0, 10, std::string(100, 'x') + "\x1b[2J");
  EXPECT_EQ(out.str().size(), kClear.size() + 39);
  progress.clear();
  std::ostringstream other;
  Progress hostile(other, true, 80, [] { return 0.0; });
  hostile.update(0, 10, "a\x1b[2J");
  EXPECT_EQ(other.str(), kClear + "  0%  0/10  a\\x1b[2J");
}

TEST(Progress, NothingToDoIsNoLine) {
  std::ostringstream out;
  Progress progress(out, true);
  progress.update(0, 0, "x");
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, DurationsReadAsPeopleSayThem) {
  EXPECT_EQ(duration_text(0.2), "0s");
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(125), "2m05s");
  EXPECT_EQ(duration_text(7500), "2h05m");
  EXPECT_EQ(duration_text(-3), "0s");
}

TEST(Progress, IsNotWantedWhenQuiet) { EXPECT_FALSE(progress_wanted(true)); }

}  // namespace
}  // namespace rankscope
