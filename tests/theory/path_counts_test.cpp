// Against the published table of path lengths.
#include "theory/path_counts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/published.h"

namespace rankscope {
namespace {

TEST(PathCounts, AgreeWithThePublishedTable) {
  const auto table = published_rows("dong2021_path_counts");
  ASSERT_EQ(table.size(), 9u);
  for (const auto& row : table) {
    ASSERT_EQ(row.size(), 12u) << row[0];
    const auto number = [&](size_t i) { return published_number(row[i]); };
    const auto layers = static_cast<int64_t>(number(1)), heads = static_cast<int64_t>(number(2));
    const PathCounts c = path_counts(layers, heads);
    EXPECT_NEAR(c.log10_total, number(3), 0.005) << row[0];  // half a unit of the last digit given
    EXPECT_NEAR(c.mean, number(4), 0.0005) << row[0];
    EXPECT_NEAR(c.deviation, number(5), 0.0005) << row[0];
    EXPECT_EQ(c.mode, number(6)) << row[0];
    for (size_t i = 0; i < 5; ++i)
      EXPECT_NEAR(c.share[static_cast<size_t>(layers) - i], number(7 + i), 0.00005) << row[0] << " " << i;
  }
}

// By hand: (1 + 2 x) (1 + x) (1 + 3 x) = 1 + 6 x + 11 x^2 + 6 x^3.
TEST(PathCounts, OfLayersThatDifferAreTheCoefficientsOfTheirProduct) {
  const std::vector<LayerPaths> layers{{2}, {1}, {3}};
  const PathCounts c = path_counts(layers);
  const double known[] = {1, 6, 11, 6};
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(std::pow(10, c.log10_count[k]), known[k], 1e-13 * known[k] * 24);
    EXPECT_NEAR(c.share[k], known[k] / 24, 1e-15);
  }
  EXPECT_EQ(c.mode, 2);
  EXPECT_NEAR(c.mean, 2.0 / 3 + 1.0 / 2 + 3.0 / 4, 1e-15);
  EXPECT_EQ(path_counts(std::vector<LayerPaths>{{2}, {2}, {2}}).share, path_counts(3, 2).share);
}

// By hand: 4 x (1 + 3 x) 4 x = 16 x^2 + 48 x^3; without heads 1 * (1 + 3 x) * 1.
TEST(PathCounts, WithoutASkipOrHeadsAreOfThePathsThatAreLeft) {
  const PathCounts c = path_counts(std::vector<LayerPaths>{{4, false}, {3}, {4, false}});
  EXPECT_EQ(c.share, (std::vector<double>{0, 0, 0.25, 0.75}));
  EXPECT_NEAR(std::pow(10, c.log10_total), 64, 1e-12);
  EXPECT_EQ(std::pow(10, c.log10_count[0]), 0);
  EXPECT_EQ(c.mode, 3);
  const PathCounts gone = path_counts(std::vector<LayerPaths>{{0}, {3}, {0}});
  EXPECT_EQ(gone.share, (std::vector<double>{0.25, 0.75, 0, 0}));
  EXPECT_EQ(gone.mode, 1);
  const PathCounts none = path_counts(std::vector<LayerPaths>{{3}, {0, false}});
  EXPECT_EQ(none.share, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(std::pow(10, none.log10_total), 0);
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

TEST(PathWeights, AreTheSumOverAllChoicesOfLayers) {
  const std::vector<double> alpha{.901, .905, .907, .889, .856, .778};  // measured by the authors
  const double r0 = 400, c = 1.0491046;
  std::vector<double> direct(7, 0.0);
  for (unsigned taken = 0; taken < 64; ++taken) {
    double product = 1;
    size_t k = 0;
    for (size_t l = 0; l < 6; ++l) {
      const bool through = ((taken >> l) & 1U) != 0;
      product *= through ? 2 * (1 - alpha[l]) : alpha[l];  // 2 heads
      k += through;
    }
    direct[k] += product;
  }
  const std::vector<double> ours = log_path_weights(alpha, 2, r0, c);
  ASSERT_EQ(ours.size(), 7u);
  for (size_t k = 0; k < 7; ++k)
    EXPECT_NEAR(ours[k], std::log(direct[k] * r0) - (std::pow(3.0, static_cast<double>(k)) - 1) * std::log(c),
                1e-12);
}

TEST(PathWeights, OfEqualLayersAreBinomial) {
  const std::vector<double> ours = log_path_weights(std::vector<double>(12, 0.6), 12, 400, 1.0491046);
  const PathCounts counts = path_counts(12, 12);
  for (size_t k = 0; k <= 12; ++k) {
    const double n = static_cast<double>(k);
    EXPECT_NEAR(ours[k],
                counts.log10_count[k] * std::log(10.0) + (12 - n) * std::log(0.6) + n * std::log(0.4) +
                    std::log(400.0) - (std::pow(3.0, n) - 1) * std::log(1.0491046),
                1e-11 * std::pow(3.0, n));
  }
}

// One after another, as for layers that differ, and by the closed form of layers that are equal.
TEST(PathWeights, OfEqualLayersAreThoseOfLayersThatDifferByNothing) {
  constexpr size_t kLayers = 40;
  std::vector<double> sums{1.0};  // e_k, in plain numbers
  for (size_t l = 0; l < kLayers; ++l) {
    sums.push_back(0);
    for (size_t k = sums.size() - 1; k > 0; --k) sums[k] = 0.7 * sums[k] + 0.3 * sums[k - 1];
    sums[0] *= 0.7;
  }
  const std::vector<double> ours = log_path_weights(std::vector<double>(kLayers, 0.7), 1, 1, 1);
  // Rounding of lgamma(41), 110, three times and of 40 log 0.3, 48.
  for (size_t k = 0; k <= kLayers; ++k) EXPECT_NEAR(ours[k], std::log(sums[k]), 1e-13) << k;
}

TEST(PathWeights, OfLayersThatPassOnAllOrNothingAreOfOneLength) {
  const std::vector<double> all = log_path_weights(std::vector<double>(3, 1.0), 2, 1, 1),
                            nothing = log_path_weights(std::vector<double>(3, 0.0), 2, 1, 1);
  EXPECT_EQ(all, (std::vector<double>{0, -INFINITY, -INFINITY, -INFINITY}));
  EXPECT_EQ(nothing[0], -INFINITY);
  EXPECT_DOUBLE_EQ(nothing[3], 3 * std::log(2.0));
}

}  // namespace
}  // namespace rankscope
