#include "report/plot.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/text.h"

namespace rankscope {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

TEST(Plot, AStraightLineIsDrawnFromCornerToCorner) {
  const std::vector<std::string> lines =
      draw_plot({{"rank", {{1, 1}, {10, 10}, {100, 100}}}}, {"x", "y", true, true}, 34, 4, false);
  EXPECT_EQ(joined(lines),
            "y (log)\n"
            "       100 |                 ....A\n"
            "           |           ......\n"
            "           |      .....A\n"
            "         1 | A....\n"
            "           +----------------------\n"
            "             1     x (log)     100\n"
            "           A rank\n");
}

TEST(Plot, StaysInsideItsWidthAndUsesBraille) {
  const std::vector<std::string> lines =
      draw_plot({{"ours", {{1, 0.2}, {16, 0.03}}}, {"published", {{1, 0.3}, {16, 0.02}}, false, true, true}},
                {"rank", "mse"}, 80, 12, true);
  for (const std::string& line : lines) EXPECT_LE(display_width(line), 80) << line;
  EXPECT_NE(joined(lines).find("⠉"), std::string::npos);
  EXPECT_NE(joined(lines).find("● ours"), std::string::npos);
  EXPECT_NE(joined(lines).find("○ published"), std::string::npos);
}

TEST(Plot, LeavesOutWhatHasNoPlaceAndDrawsNothingOfNothing) {
  EXPECT_TRUE(draw_plot({{"a", {{0, 1}, {1, std::nan("")}}}}, {"x", "y", true, false}, 80, 8, false).empty());
  EXPECT_FALSE(draw_plot({{"a", {{0, 1}, {1, 2}}}}, {"x", "y", true, false}, 80, 8, false).empty());
}

TEST(Plot, NamesFromOutsideDoNotDriveTheTerminal) {
  for (const std::string& line : draw_plot({{"\x1b[31mlabel", {{1, 1}, {2, 2}}}},
                                           {"\x1b[31mx", "\x1b[31my", false, false}, 40, 4, false))
    EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
}

TEST(Plot, EndsTooFarApartForADoubleAreDrawn) {
  for (const bool log : {false, true})
    EXPECT_FALSE(
        draw_plot({{"a", {{1, log ? 1e-308 : -1e308}, {2, 1e308}}}}, {"x", "y", false, log}, 40, 4, false)
            .empty());
}

}  // namespace
}  // namespace rankscope
