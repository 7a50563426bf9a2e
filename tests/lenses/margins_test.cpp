// The lens margins: sinks of known strength, wherever they stand and however long the text.
#include <gtest/gtest.h>

#include <cmath>

#include "support/lens_run.h"

namespace rankscope::testing {
namespace {

/// Every query scores key `sink` this many nats above all others.
at::Tensor sink_at(int64_t T, int64_t sink, double nats, bool causal) {
  at::Tensor scores = at::zeros({1, T, T}, at::kDouble);
  scores.select(2, sink).fill_(nats);
  if (causal) scores = scores + at::full({T, T}, -1e300, at::kDouble).triu(1);
  return at::softmax(scores, -1);
}

/// Logarithms of ratios of sums of T doubles.
constexpr double kSums = 1e-11;

TEST(Margins, UniformAttentionHasNoneAtAnyLength) {
  for (const bool causal : {false, true})
    for (const int64_t T : {16, 64, 512})
      EXPECT_NEAR(see_patterns("margins", {sink_at(T, 0, 0, causal)}, {causal}).of("sink_margin", 0, 0), 0,
                  kSums);
}

TEST(Margins, ASinkHasTheSameMarginAtAnyLengthThoughItsMassFalls) {
  for (const bool causal : {false, true})
    for (const int64_t T : {16, 32, 64, 128, 256, 512}) {
      const Collected got = see_patterns("margins", {sink_at(T, 0, 4, causal)}, {causal});
      EXPECT_NEAR(got.of("sink_margin", 0, 0), 4, kSums) << T;
      EXPECT_NEAR(got.of("sink_scatter", 0, 0), 0, kSums);
      EXPECT_EQ(got.of("sink_first", 0, 0), 1);
      if (causal) {
        EXPECT_NEAR(got.of("sink_slope", 0, 0), 0, kSums);
      }
    }
}

TEST(Margins, TheMassIsThatOfTheKeyThatIsNamed) {
  at::Tensor p = at::zeros({1, 64, 64}, at::kDouble);
  for (int64_t i = 0; i < 64; ++i) p[0][i][i < 40 ? i : 40] = 1;  // a sink in the second half
  p = 0.9 * p + 0.1 * sink_at(64, 0, 0, true);
  const Collected got = see_patterns("margins", {p}, {true});
  double mass = 0;
  for (int64_t i = 40; i < 64; ++i) mass += (0.9 + 0.1 / static_cast<double>(i + 1)) / 24;
  EXPECT_NEAR(got.of("sink_key_mass", 0, 0), mass, kSums);
}

TEST(Margins, AMassThatStaysHasAMarginThatGrowsWithTheLength) {
  at::Tensor p = at::zeros({1, 64, 64}, at::kDouble);
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j <= i; ++j) p[0][i][j] = i == 0 ? 1 : j == 0 ? 0.5 : 0.5 / static_cast<double>(i);
  // log(0.5 / 0.5) + log(t - 1): about one nat a nat of length, and more for the shortest.
  EXPECT_NEAR(see_patterns("margins", {p}, {true}).of("sink_slope", 0, 0), 1.1, 0.15);
}

TEST(Margins, AKeyInTheMiddleOfACausalTextIsFound) {
  const Collected got = see_patterns("margins", {sink_at(40, 20, 30, true)}, {true});
  EXPECT_GT(got.of("sink_margin", 0, 0), 10);
  EXPECT_EQ(got.total("sink_key_position", 0).value, 20);
  EXPECT_EQ(got.of("sink_first", 0, 0), 0);
}

TEST(Margins, AKeyThatMovesIsFoundInEverySampleAndByItsTokenWhereItIsOne) {
  std::vector<at::Tensor> patterns;
  for (int64_t s = 0; s < 8; ++s)
    patterns.push_back(sink_at(40, 3 + 5 * (s % 4), 8, false));  // ids are i % 5
  const Collected got = see_patterns("margins", patterns, {});
  for (int64_t s = 0; s < 8; ++s) EXPECT_NEAR(got.of("sink_margin", s, 0), 8, kSums);
  EXPECT_EQ(got.total("sink_key_token", 0).value, 3);
  EXPECT_EQ(got.total("sink_key_token_share", 0).value, 1);
  EXPECT_EQ(got.total("sink_key_position_share", 0).value, 0.25);
}

// In a window of 8 no key of 64 is seen by a quarter of the queries; of 16 tokens each key is seen by enough.
TEST(Margins, WhereNoKeyIsSeenByAQuarterOfTheQueriesThereIsNoStrongestOne) {
  at::manual_seed(2);
  const MaskKind mask{true, 8};
  const Collected none = see_patterns("margins", {random_pattern(2, 64, mask)}, mask);
  for (const char* metric : {"sink_key_position", "sink_key_position_share", "sink_key_token"})
    EXPECT_FALSE(none.values.contains({metric, 0, "all"})) << metric;
  const Collected some =
      see_patterns("margins", {random_pattern(2, 64, mask), random_pattern(2, 16, mask)}, mask);
  EXPECT_EQ(some.total("sink_key_position_share", 0).value, 1);
  EXPECT_EQ(some.total("sink_key_position_share", 0).n, 1);
}

TEST(Margins, TheNullIsWhatTheLargestOfManyKeysReachesByChance) {
  at::manual_seed(1);
  const at::Tensor noise = random_pattern(1, 64, {}, 1.0);
  const Collected got = see_patterns("margins", {noise}, {});
  // Independent scores: any key's margin scatters about -1/2 by 1 over queries, and the median of the largest
  // of 64 means stays within a few of its errors 1 / sqrt(64) of that.
  EXPECT_NEAR(got.of("sink_margin_null", 0, 0), got.of("sink_margin", 0, 0), 5 * 1.25 / 8);
  const Collected sink = see_patterns("margins", {sink_at(64, 5, 6, false)}, {});
  EXPECT_LT(sink.of("sink_margin_null", 0, 0), 3);
}

}  // namespace
}  // namespace rankscope::testing
