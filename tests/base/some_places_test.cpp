// Places that are read of a long sample, and samples of a long text.
#include "base/some_places.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rankscope {
namespace {

// Drawn places would have three quarters of 32 in one of two classes three times in a thousand, and of more
// classes less often.
TEST(SomePlaces, AreHardlyEverMostlyOfOneClassOfAPeriod) {
  int lengths = 0, mostly_one = 0;
  for (int64_t n = 33; n <= 2048; ++n)
    for (int64_t p = 2; p <= 8; ++p) {
      std::vector<int64_t> in_class(static_cast<size_t>(p));
      for (const int64_t place : some_places(n, 32)) ++in_class[static_cast<size_t>(place % p)];
      ++lengths, mostly_one += *std::max_element(in_class.begin(), in_class.end()) >= 24;
      EXPECT_LE(*std::max_element(in_class.begin(), in_class.end()), 28) << n << " tokens, period " << p;
    }
  EXPECT_LE(mostly_one, lengths * 3 / 1000);
}

// A file that goes round its kinds of text: of 8 samples evenly spread all were of one kind.
TEST(SomePlaces, AFewOfManyAreOfOneClassNoOftenerThanDrawnOnes) {
  int lengths = 0, one = 0;
  for (int64_t n = 16; n <= 1024; ++n)
    for (int64_t p = 2; p <= 8; ++p) {
      const auto places = some_places(n, 8);
      ++lengths, one += std::all_of(places.begin(), places.end(),
                                    [&](int64_t place) { return place % p == places.front() % p; });
    }
  // Drawn ones: 2^-7 of period 2, 3^-7 of 3 and so on, over seven periods 1 / 830.
  EXPECT_LE(one, lengths / 830);
}

TEST(SomePlaces, AreAscendingOneOfEachPartAndAllOfThemWhereTheyAreNoMore) {
  for (int64_t n = 0; n <= 100; ++n)
    for (int64_t most = 1; most <= 40; ++most) {
      const auto places = some_places(n, most);
      const int64_t parts = std::min(n, most);
      ASSERT_EQ(static_cast<int64_t>(places.size()), parts);
      for (int64_t i = 0; i < parts; ++i) {
        EXPECT_GE(places[static_cast<size_t>(i)], i * n / parts);
        EXPECT_LT(places[static_cast<size_t>(i)], (i + 1) * n / parts);
      }
    }
}

}  // namespace
}  // namespace rankscope
