// Against the published table of path lengths.
#include "theory/path_counts.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope {
namespace {

struct Published {
  const char* model;
  int64_t layers, heads;
  double log10_total, mean, deviation;
  int64_t mode;
  double last[5];  // shares of the lengths L, L - 1, ..., L - 4
};

TEST(PathCounts, AgreeWithThePublishedTable) {
  for (const Published& p :
       {Published{"DeiT-T", 12, 3, 7.22, 9.000, 1.500, 9, {.0317, .1267, .2323, .2581, .1936}},
        Published{"MobileBERT", 12, 4, 8.39, 9.600, 1.386, 10, {.0687, .2062, .2835, .2362, .1329}},
        Published{"DistilBERT", 6, 12, 6.68, 5.538, .653, 6, {.6186, .3093, .0644, .0072, .0004}},
        Published{"BERT-base", 12, 12, 13.37, 11.077, .923, 12, {.3827, .3827, .1754, .0487, .0091}},
        Published{"BERT-large", 24, 16, 29.53, 22.588, 1.153, 23, {.2334, .3501, .2516, .1153, .0378}},
        Published{"ViT-H", 32, 16, 39.37, 30.118, 1.331, 31, {.1437, .2874, .2784, .1740, .0789}},
        Published{"T5-3B", 24, 32, 36.44, 23.273, .840, 24, {.4778, .3584, .1288, .0295, .0048}},
        Published{"T5-11B", 24, 128, 50.65, 23.814, .430, 24, {.8296, .1556, .0140, .0008, .0000}},
        Published{"GPT-3", 96, 96, 190.73, 95.010, .990, 96, {.3698, .3698, .1830, .0597, .0145}}}) {
    const PathCounts c = path_counts(p.layers, p.heads);
    EXPECT_NEAR(c.log10_total, p.log10_total, 0.005) << p.model;
    EXPECT_NEAR(c.mean, p.mean, 0.0005) << p.model;
    EXPECT_NEAR(c.deviation, p.deviation, 0.0005) << p.model;
    EXPECT_EQ(c.mode, p.mode) << p.model;
    for (size_t i = 0; i < 5; ++i)
      EXPECT_NEAR(c.share[static_cast<size_t>(p.layers) - i], p.last[i], 0.00005) << p.model << " " << i;
  }
}

TEST(PathCounts, SharesSumToOneAndCountsToTheTotal) {
  const PathCounts c = path_counts(6, 2);
  double shares = 0, paths = 0;
  const int64_t known[] = {1, 12, 60, 160, 240, 192, 64};
  for (int64_t k = 0; k <= 6; ++k) {
    shares += c.share[static_cast<size_t>(k)];
    paths += std::pow(10, c.log10_count[static_cast<size_t>(k)]);
    EXPECT_EQ(path_count(6, 2, k, 1 << 20), known[k]);
  }
  EXPECT_NEAR(shares, 1.0, 1e-12);
  EXPECT_NEAR(paths, 729.0, 1e-9);
  EXPECT_EQ(path_count(96, 96, 48, 1000), 1000);
}

}  // namespace
}  // namespace rankscope
