#include "report/axis.h"

#include <gtest/gtest.h>

namespace rankscope {
namespace {

TEST(FigureAxis, LinearTicksAreRound) {
  EXPECT_EQ(nice_axis(0, 1, false, 5).ticks, (std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}));
  EXPECT_EQ(nice_axis(0, 6, false, 6).ticks, (std::vector<double>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(nice_axis(-3, 4, false, 4).ticks, (std::vector<double>{-4, -2, 0, 2, 4}));
}

TEST(FigureAxis, LogTicksArePowersOfTen) {
  const FigureAxis wide = nice_axis(2e-7, 0.5, true, 10);
  EXPECT_EQ(wide.ticks.size(), 8u);
  EXPECT_DOUBLE_EQ(wide.low, 1e-7);
  EXPECT_DOUBLE_EQ(wide.high, 1);
  const FigureAxis far = nice_axis(1e-160, 1, true, 5);
  EXPECT_LE(far.ticks.size(), 7u);
  const FigureAxis close = nice_axis(0.3, 0.9, true, 5);
  EXPECT_DOUBLE_EQ(close.low, 0.2);
  EXPECT_DOUBLE_EQ(close.high, 1);
}

TEST(FigureAxis, EveryValueIsOnIt) {
  for (const bool log : {false, true})
    for (const double low : {1e-12, 0.3, 7.0, 1000.0})
      for (const double factor : {1.0, 1.001, 3.0, 1e6})
        for (const int count : {1, 3, 10}) {
          const FigureAxis axis = nice_axis(low, low * factor, log, count);
          EXPECT_GE(axis.place(low), -1e-9) << low << ' ' << factor << ' ' << log;
          EXPECT_LE(axis.place(low * factor), 1 + 1e-9) << low << ' ' << factor << ' ' << log;
          EXPECT_GE(axis.ticks.size(), 2u);
          EXPECT_DOUBLE_EQ(axis.place(axis.low), 0);
          EXPECT_DOUBLE_EQ(axis.place(axis.high), 1);
        }
}

TEST(FigureAxis, TicksStandAtTheDataWhereTheyFit) {
  const auto wide = [](const std::string& text) { return 4.0 * static_cast<double>(text.size()); };
  const auto ranks = axis_at({8, 1, 2, 4, 4}, true, 100, wide);
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->ticks, (std::vector<double>{1, 2, 4, 8}));
  EXPECT_EQ(ranks->place(1), 0);
  EXPECT_EQ(ranks->place(8), 1);
  EXPECT_DOUBLE_EQ(ranks->place(2), 1.0 / 3);
  EXPECT_FALSE(axis_at({1, 2, 4, 8}, true, 20, wide)) << "no room";
  EXPECT_FALSE(axis_at({1, 2, 4, 64}, false, 100, wide)) << "1 and 2 would overlap on a linear axis";
  EXPECT_FALSE(axis_at({0, 1, 2}, true, 100, wide)) << "0 has no logarithm";
  EXPECT_FALSE(axis_at({3}, false, 100, wide));
}

TEST(FigureAxis, TicksReadShort) {
  EXPECT_EQ(tick_text(0.6000000000000001), "0.6");
  EXPECT_EQ(tick_text(1e-7), "1e-07");
  EXPECT_EQ(tick_text(0), "0");
}

}  // namespace
}  // namespace rankscope
