#include "report/columns.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rankscope {
namespace {

std::string printed(const std::vector<Column>& columns, int width) {
  std::ostringstream out;
  print_columns(columns, {.width = width}, out);
  return out.str();
}

TEST(Columns, StandUnderTheirTitles) {
  EXPECT_EQ(printed({{"layer", {"0", "10"}}, {"name", {"a", "long one"}, true}, {"x", {"0.5", "12"}}}, 80),
            "layer  name        x\n"
            "    0  a         0.5\n"
            "   10  long one   12\n");
}

TEST(Columns, ThatDoNotFitGoBelow) {
  EXPECT_EQ(printed({{"k", {"0"}}, {"first", {"1"}}, {"second", {"2"}}}, 10),
            "k  first\n"
            "0      1\n"
            "\n"
            "k  second\n"
            "0       2\n");
}

TEST(Columns, MayHaveGaps) { EXPECT_EQ(printed({{"k", {"0", "1"}}, {"x", {"5"}}}, 80), "k  x\n0  5\n1\n"); }

}  // namespace
}  // namespace rankscope
