// Where a tensor stops being finite, by sample and token.
#include "pass/finite.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/tiny.h"

namespace rankscope {
namespace {

/// The row that is found, at once and late; -1 for none.
int64_t flag(const at::Tensor& x, const TilePlace& place = {}) {
  std::vector<int64_t> found;
  for (const bool late : {false, true}) {
    Crossing crossing(late);
    found.push_back(-1);
    watch_finite(x, place, crossing, [&](int64_t row) { found.back() = row; });
    crossing.finish();
  }
  EXPECT_EQ(found[0], found[1]);
  return found[0];
}

TEST(Finite, NamesTheFirstRowThatIsNot) {
  at::Tensor x = at::full({7, 3}, 1e19, at::kFloat);  // three squares are 3e38, and 3.4e38 is the largest
  EXPECT_EQ(flag(x), -1);
  x[5][1] = std::nan("");
  EXPECT_EQ(flag(x), 5);
  x[4][2] = -INFINITY;
  EXPECT_EQ(flag(x), 4);
  x[0][0] = INFINITY;
  EXPECT_EQ(flag(x), 0);
}

// A norm would make zeros of such a row, and the rank of zeros would be printed.
TEST(Finite, ARowWhoseSquaresOverflowIsNamedToo) {
  at::Tensor x = at::ones({7, 3}, at::kFloat);
  x[6][0] = 1e30;
  EXPECT_EQ(flag(x), 6);
  x[2][1] = -2e19;
  EXPECT_EQ(flag(x), 2);
  EXPECT_EQ(flag(x.to(at::kDouble)), -1);
  at::Tensor tile = at::full({1, 1, 2, 3}, 1e30, at::kFloat);  // scores are not squared
  EXPECT_EQ(flag(tile, {0, 0, 2}), -1);
}

TEST(Finite, NamesTheFirstQueryOfATile) {
  at::Tensor tile = at::rand({2, 3, 4, 5});
  EXPECT_EQ(flag(tile, {0, 0, 4}), -1);
  tile[1][2][3][0] = std::nan("");
  EXPECT_EQ(flag(tile, {0, 0, 4}), 7);
  tile[1][0][1][4] = std::nan("");
  EXPECT_EQ(flag(tile, {0, 0, 4}), 5);
}

TEST(Finite, ARowIsATokenOfASample) {
  // Sorted by length: samples 1, 0, 2 of 4, 5 and 6 tokens.
  const std::vector<Sample> samples = test::random_samples({5, 4, 6}, 50);
  const Batch batch = make_batches(samples, test::tiny_spec(), 8).front();
  const int64_t first = batch.samples[0], last = batch.samples[2];
  EXPECT_EQ(token_of(batch, {}, 0), fmt::format("sample {}, token 0", first));
  EXPECT_EQ(token_of(batch, {}, batch.offsets[1] - 1),
            fmt::format("sample {}, token {}", first, batch.length(0) - 1));
  EXPECT_EQ(token_of(batch, {}, batch.offsets[2] + 3), fmt::format("sample {}, token 3", last));
  // A tile of whole samples counts on from one to the next; a tile of rows begins at its first.
  EXPECT_EQ(token_of(batch, {1, 0, 5}, 6), fmt::format("sample {}, token 1", last));
  EXPECT_EQ(token_of(batch, {2, 4, 6}, 1), fmt::format("sample {}, token 5", last));
}

TEST(Finite, IsSaidAtOnceOnTheHostAndLaterFromADevice) {
  at::Tensor x = at::zeros({3, 2});
  x[2][0] = std::nan("");
  for (const bool late : {false, true}) {
    Crossing crossing(late);
    int64_t found = -1;
    watch_finite(x, {}, crossing, [&](int64_t row) { found = row; });
    EXPECT_EQ(found, late ? -1 : 2);
    crossing.finish();
    EXPECT_EQ(found, 2);
    watch_finite(at::zeros({3, 2}), {}, crossing, [&](int64_t) { FAIL(); });
    crossing.finish();
  }
}

}  // namespace
}  // namespace rankscope
