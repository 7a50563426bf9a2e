#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "base/error.h"
#include "support/temporary_folder.h"
#include "tasks/support/hull.h"
#include "tasks/support/texts.h"
#include "tasks/token_task.h"

namespace rankscope {
namespace {

TEST(Hull, HasTheCornersOfKnownPoints) {
  // A square, its centre, the middle of an edge, and the first corner once more.
  const std::vector<double> points{0, 0, 4, 0, 4, 4, 0, 4, 2, 2, 2, 0, 0, 0};
  EXPECT_EQ(hull_corners(points), (std::vector<int64_t>{1, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(hull_corners(std::vector<double>{0, 0, 1, 1, 2, 2}), (std::vector<int64_t>{1, 0, 1}));
}

// A point is a corner where no triangle of three others holds it.
TEST(Hull, AgreesWithEveryTriangle) {
  const TokenData data = token_task_named("hull").make({.tokens = 7, .train = 40, .test = 1, .seed = 3});
  for (size_t s = 0; s < 40; ++s) {
    const double* p = data.train.points.data() + 14 * s;
    const auto side = [&](size_t a, size_t b, size_t c) {
      return (p[2 * b] - p[2 * a]) * (p[2 * c + 1] - p[2 * a + 1]) -
                 (p[2 * b + 1] - p[2 * a + 1]) * (p[2 * c] - p[2 * a]) >
             0;
    };
    for (size_t i = 0; i < 7; ++i) {
      bool inside = false;
      for (size_t a = 0; a < 7; ++a)
        for (size_t b = a + 1; b < 7; ++b)
          for (size_t c = b + 1; c < 7; ++c)
            if (i != a && i != b && i != c)
              inside = inside || (side(a, b, i) == side(b, c, i) && side(b, c, i) == side(c, a, i));
      EXPECT_EQ(data.train.labels[7 * s + i], inside ? 0 : 1);
    }
  }
}

TEST(Hull, OfTenUniformPointsSixAreCorners) {
  // 59.6 % over 2e5 sets; 2000 sets of ten have a standard error below 0.4 %.
  const TokenData data = token_task_named("hull").make({.tokens = 10, .train = 2000, .test = 1, .seed = 1});
  EXPECT_NEAR(majority_share(data.train), 0.596, 0.012);
}

TEST(Sort, LabelsAreTheLettersInOrder) {
  const TokenData data = token_task_named("sort").make({.tokens = 8, .train = 50, .test = 20, .seed = 5});
  EXPECT_EQ(data.train.sequences(), 50);
  for (const TokenSet* set : {&data.train, &data.test})
    for (int64_t s = 0; s < set->sequences(); ++s) {
      std::vector<int64_t> letters(set->ids.begin() + 8 * s, set->ids.begin() + 8 * s + 8);
      const std::vector<int64_t> labels(set->labels.begin() + 8 * s, set->labels.begin() + 8 * s + 8);
      EXPECT_TRUE(std::is_sorted(labels.begin(), labels.end()));
      EXPECT_TRUE(std::is_permutation(letters.begin(), letters.end(), labels.begin()));
    }
  EXPECT_EQ(std::set<int64_t>(data.train.ids.begin(), data.train.ids.end()).size(), 10u);
  EXPECT_NE(std::vector(data.train.ids.begin(), data.train.ids.begin() + 160), data.test.ids);
}

// Every assignment of labels to the words of a text, tried out.
TEST(Memorise, TheCeilingIsThatOfTheBestAssignment) {
  const TokenData data = token_task_named("memorise").make({.tokens = 12, .train = 6, .test = 6, .seed = 2});
  double right = 0, all = 0;
  for (int64_t s = 0; s < 6; ++s) {
    const std::vector<int64_t> ids(data.test.ids.begin() + 12 * s,
                                   data.test.ids.begin() + 12 * s + data.test.length(s));
    const std::set<int64_t> words(ids.begin(), ids.end());
    const std::vector<int64_t> list(words.begin(), words.end());
    int best = 0;
    for (int choice = 0; choice < 1 << list.size(); ++choice) {
      int hits = 0;
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto word = std::find(list.begin(), list.end(), ids[i]) - list.begin();
        hits += ((choice >> word) & 1) == data.test.labels[static_cast<size_t>(12 * s) + i];
      }
      best = std::max(best, hits);
    }
    right += best;
    all += static_cast<double>(ids.size());
  }
  EXPECT_LT(right, all);  // some word comes twice with both labels
  EXPECT_DOUBLE_EQ(ceiling_without_positions(data.test), right / all);
}

TEST(Memorise, TheSyntheticTextFollowsAPowerLaw) {
  const Texts texts = synthetic_texts(400, 60, 9);
  std::vector<double> counts(20, 0);
  double all = 0;
  for (const auto& ids : texts.ids) {
    EXPECT_GE(ids.size(), 20u);
    EXPECT_LE(ids.size(), 60u);
    for (const int64_t id : ids) {
      ASSERT_LT(id, texts.vocabulary);
      if (id < 20) counts[static_cast<size_t>(id)] += 1;
      all += 1;
    }
  }
  double harmonic = 0;
  for (int64_t r = 1; r <= texts.vocabulary; ++r) harmonic += 1.0 / static_cast<double>(r);
  for (size_t r = 0; r < counts.size(); ++r) {
    const double expected = all / harmonic / static_cast<double>(r + 1);
    EXPECT_NEAR(counts[r], expected, 5 * std::sqrt(expected));
  }
}

TEST(Memorise, ReadsPairsOfATable) {
  EXPECT_EQ(words_of("Iraq's  yet."), (std::vector<std::string>{"iraq", "'", "s", "yet", "."}));
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "train.tsv")
      << "index\tsentence1\tsentence2\tlabel\n0\tA b, a\tB c\tx\n1\tc\ta b\ty\n";
  const Texts texts = read_texts(folder.path(), 2, 128);
  // [CLS] 0, [SEP] 1, a 2, b 3, "," 4, c 5
  EXPECT_EQ(texts.ids[0], (std::vector<int64_t>{0, 2, 3, 4, 2, 1, 3, 5, 1}));
  EXPECT_EQ(texts.ids[1], (std::vector<int64_t>{0, 5, 1, 2, 3, 1}));
  EXPECT_EQ(texts.vocabulary, 6);
  EXPECT_EQ(read_texts(folder.path(), 1, 4).ids[0].size(), 4u);
  EXPECT_THROW(read_texts(folder.path(), 3, 128), Error);
  EXPECT_THROW(read_texts(folder.path() / "none", 1, 128), Error);
}

TEST(Memorise, PaddingHasNoLabel) {
  const TokenData data = token_task_named("memorise").make({.tokens = 40, .train = 30, .test = 5, .seed = 4});
  EXPECT_EQ(data.test.sequences(), 5);
  int64_t shorter = 0;
  for (int64_t s = 0; s < 30; ++s) {
    const int64_t n = data.train.length(s);
    shorter += n < 40;
    for (int64_t i = 0; i < 40; ++i)
      EXPECT_EQ(data.train.labels[static_cast<size_t>(40 * s + i)] == kNoToken, i >= n);
  }
  EXPECT_GT(shorter, 0);
}

}  // namespace
}  // namespace rankscope
