#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "support/temporary_folder.h"
#include "tasks/support/backcopy.h"
#include "tasks/support/hull.h"
#include "tasks/support/texts.h"
#include "tasks/token_task.h"
#include "tasks/unasked.h"

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

TEST(TwoScales, LabelsSayWhetherAMarkIsNearAndWhichLetterLeads) {
  constexpr int64_t T = 60, kTexts = 30;
  const TokenData data =
      token_task_named("two_scales").make({.tokens = T, .train = kTexts, .test = 2, .seed = 4});
  EXPECT_EQ(data.vocabulary, 3);
  EXPECT_EQ(data.classes, 4);
  std::set<int64_t> seen;
  for (int64_t s = 0; s < kTexts; ++s) {
    const int64_t* ids = data.train.ids.data() + s * T;
    const auto firsts = std::count(ids, ids + T, 0), seconds = std::count(ids, ids + T, 1);
    ASSERT_NE(firsts, seconds);
    for (int64_t i = 0; i < T; ++i) {
      bool near = false;
      for (int64_t j = 0; j < T; ++j) near = near || (ids[j] == 2 && std::abs(i - j) <= 8);
      const int64_t label = data.train.labels[static_cast<size_t>(s * T + i)];
      ASSERT_EQ(label, 2 * near + (seconds > firsts));
      seen.insert(label);
    }
  }
  EXPECT_EQ(seen.size(), 4u);
}

// With three values words of z_2 are 6 key + value, those of z_1 36 + 3 key + value, z_0 45 + value, w 48 +
// what it tells.
TEST(CompositionTask, ReadsItsAnswerOffThePrompt) {
  const TokenData data =
      token_task_named("composition").make({.tokens = 11, .train = 200, .test = 5, .seed = 3});
  EXPECT_EQ(data.vocabulary, 50);
  EXPECT_EQ(data.classes, 6);
  for (size_t s = 0; s < 200; ++s) {
    const int64_t* ids = data.train.ids.data() + 11 * s;
    const int64_t told = ids[10] - 48, start = ids[9] - 45;
    const int64_t between = (ids[6 + start] - 36) % 3;
    EXPECT_EQ((ids[6 + start] - 36) / 3, start);
    EXPECT_EQ(data.train.labels[11 * s + 10], ids[3 * told + between] % 6);
    EXPECT_EQ(data.train.labels[11 * s], kUnasked);
  }
  EXPECT_NE(std::vector(data.train.ids.begin(), data.train.ids.begin() + 55), data.test.ids);
  EXPECT_THROW(token_task_named("composition").make({.tokens = 12, .train = 1, .test = 1}), Error);
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

// The last token asks, and no other does.
std::vector<int64_t> asked(const TokenSet& set, int64_t s) {
  const auto first = set.labels.begin() + s * set.tokens;
  EXPECT_TRUE(std::all_of(first, first + set.tokens - 1, [](int64_t label) { return label == kUnasked; }));
  return {set.ids.begin() + s * set.tokens, set.ids.begin() + (s + 1) * set.tokens};
}

int64_t answer(const TokenSet& set, int64_t s) {
  return set.labels[static_cast<size_t>((s + 1) * set.tokens - 1)];
}

TEST(Induction, TheAnswerFollowedTheLastWordWhereItStoodBefore) {
  const TokenData data = token_task_named("induction").make({.tokens = 9, .train = 60, .test = 1, .seed = 2});
  for (int64_t s = 0; s < 60; ++s) {
    const std::vector<int64_t> ids = asked(data.train, s);
    ASSERT_EQ(std::count(ids.begin(), ids.end() - 1, ids.back()), 1);
    const auto before = std::find(ids.begin(), ids.end() - 1, ids.back());
    EXPECT_EQ(before[1], answer(data.train, s));
  }
  EXPECT_EQ(data.train.length(0), 9);  // what nobody asks about is no end
  EXPECT_THROW(token_task_named("induction").make({.tokens = 2}), Error);
}

TEST(Retrieval, TheAnswerStandsBesideTheKey) {
  const TokenData data = token_task_named("retrieval").make({.tokens = 6, .train = 40, .test = 1, .seed = 2});
  ASSERT_EQ(data.vocabulary, 25);  // five keys with four values each, and five questions
  for (int64_t s = 0; s < 40; ++s) {
    std::vector<int64_t> ids = asked(data.train, s);
    const int64_t key = ids.back() - 20;
    std::set<int64_t> keys;
    for (size_t i = 0; i < 5; ++i) {
      keys.insert(ids[i] / 4);
      if (ids[i] / 4 == key) {
        EXPECT_EQ(ids[i] % 4, answer(data.train, s));
      }
    }
    EXPECT_EQ(keys, (std::set<int64_t>{0, 1, 2, 3, 4}));
  }
}

TEST(Majority, OneLetterLeadsAndIsTheAnswer) {
  const TokenData data = token_task_named("majority").make({.tokens = 8, .train = 40, .test = 1, .seed = 2});
  for (int64_t s = 0; s < 40; ++s) {
    const std::vector<int64_t> ids = asked(data.train, s);
    const auto count = [&](int64_t letter) { return std::count(ids.begin(), ids.end(), letter); };
    for (int64_t letter = 0; letter < 4; ++letter)
      if (letter != answer(data.train, s)) {
        EXPECT_LT(count(letter), count(answer(data.train, s)));
      }
  }
}

TEST(Backcopy, BehindATriggerStandsTheWordBeforeItAndElsewhereTheLawHolds) {
  const TokenData data =
      token_task_named("backcopy").make({.tokens = 40, .train = 400, .test = 1, .seed = 2});
  const TokenSet& set = data.train;
  std::map<int64_t, double> after_nine;
  double nines = 0;
  for (int64_t s = 0; s < 400; ++s)
    for (int64_t i = 0; i < 40; ++i) {
      const auto at = static_cast<size_t>(40 * s + i);
      if (i == 0) {
        EXPECT_EQ(set.ids[at], kBackcopyStart);
      }
      if (i < 39) {
        EXPECT_EQ(set.labels[at], set.ids[at + 1]);
      }
      const int64_t before = i == 0 ? kBackcopyStart : set.ids[at - 1];
      if (is_trigger(set.ids[at]) && !is_trigger(before) && before != kBackcopyStart) {
        EXPECT_EQ(set.labels[at], before);
      }
      if (set.ids[at] == 9) ++nines, ++after_nine[set.labels[at]];
    }
  ASSERT_GT(nines, 100);
  // A share of `nines` draws is within five of its standard errors.
  for (const auto& [next, count] : after_nine) {
    const double p = backcopy_probability(9, next);
    EXPECT_NEAR(count / nines, p, 5 * std::sqrt(p * (1 - p) / nines) + 1e-9) << next;
  }
  double sum = 0;
  for (int64_t next = 0; next < kBackcopyWords; ++next) sum += backcopy_probability(9, next);
  EXPECT_NEAR(sum, 1, 1e-12);
}

// Two labels are asked: one behind a trigger, which is certain, and one of the law.
TEST(Backcopy, TheFloorIsWhatTheLawItselfGivesTheLabels) {
  const TokenSet set{.tokens = 4, .ids = {0, 9, 2, 9}, .labels = {kUnasked, kUnasked, 9, 11}};
  EXPECT_NEAR(backcopy_floor(set), -std::log(backcopy_probability(9, 11)) / 2, 1e-12);
  EXPECT_EQ(majority_share(set), 0.5);  // of the two that are asked
}

}  // namespace
}  // namespace rankscope
