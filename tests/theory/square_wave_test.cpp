#include "theory/square_wave.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/philox.h"
#include "base/stats.h"
#include "theory/harmonics.h"
#include "theory/lower_bound.h"

namespace rankscope {
namespace {

TEST(SquareWave, HasOneSummandForEachBiasedHead) {
  EXPECT_EQ(SquareWave(4).summands(), 33);
  EXPECT_EQ(SquareWave(5).summands(), 51);
}

TEST(SquareWave, IsItsSumEverywhere) {
  for (const int64_t d : {2, 3, 4}) {
    const SquareWave wave(d);
    const double end = static_cast<double>(d * d + 2) * wave.spacing();
    for (int i = -5000; i <= 5000; ++i) {
      const double t = end * i / 5000;
      EXPECT_EQ(wave.at(t), wave.sum(t)) << d << " " << t;
    }
    for (int64_t i = -d * d - 1; i <= d * d + 1; ++i) {  // at the jumps and one step beside them
      const double t = static_cast<double>(i) * wave.spacing();
      for (const double s : {std::nextafter(t, -1e9), t, std::nextafter(t, 1e9)})
        EXPECT_EQ(wave.at(s), wave.sum(s)) << s;
    }
  }
}

// Energy in functions of Q^T y: E f(s) f(s') for Gaussians s, s' with correlation |Q^T w|^2, counted. Given
// Q^T y, two independent completions of y.
TEST(SquareWave, ShareOfAHeadIsThatOfCounting) {
  constexpr size_t d = 4;
  constexpr int kSamples = 400'000;
  for (const double spacing : {1.5, 3.0}) {
    const SquareWave wave(d, spacing);
    for (const size_t r : {1u, 3u}) {
      const Philox words{.seed = 23 + r};
      uint64_t index = 0;
      std::vector<double> products;
      for (int s = 0; s < kSamples; ++s) {
        double w[d], norm = 0, first = 0, second = 0;
        for (double& c : w) c = words.normal(index++), norm += c * c;
        for (size_t i = 0; i < d; ++i) {
          const double known = words.normal(index++), other = i < r ? known : words.normal(index++);
          first += w[i] * known;
          second += w[i] * other;
        }
        const double scale = std::numbers::sqrt2 / std::sqrt(norm);
        products.push_back(wave.at(first * scale) * wave.at(second * scale));
      }
      const Estimate mean = arithmetic_mean(products);
      // What the closed form leaves out: products of different harmonics.
      const double frequency = std::numbers::sqrt2 * std::numbers::pi / spacing;
      const double left_out = 2 * std::exp(-frequency * frequency);
      EXPECT_NEAR(std::exp(wave.log_captured(static_cast<int64_t>(r))), mean.value,
                  4 * mean.stderr_ + left_out)
          << spacing << " " << r;
    }
  }
}

TEST(SquareWave, ShareFallsExponentiallyWithTheMissingRank) {
  const SquareWave wave(64);
  double before = 0;
  for (int64_t r = 63; r >= 1; --r) {
    const double share = wave.log_captured(r);
    EXPECT_LT(share, before - 3) << r;  // a factor of at least e^3 for every dimension that a head lacks
    before = share;
  }
  EXPECT_EQ(wave.log_captured(64), 0);
  EXPECT_TRUE(std::isfinite(SquareWave(2048).log_captured(1)));
}

TEST(SquareWave, WithOneJumpInReachIsTheSignAndHasItsBound) {
  for (const int64_t r : {1, 3, 5}) {
    const SquareWave one_jump(6, 100);
    // Below it by what degrees above 400 may hold, sign_tail / 2, times a share below H C(l+r-1, l) / N(d,
    // l).
    EXPECT_NEAR(one_jump.lower_bound(r, 4), lower_bound(6, r, 4), sign_tail(6, 400) / 2) << r;
    EXPECT_LE(one_jump.lower_bound(r, 4), lower_bound(6, r, 4) + 1e-10) << r;
  }
}

TEST(SquareWave, DefeatsLowRankWithoutABoundOnWeights) {
  const SquareWave wave(8, 4 * std::numbers::sqrt2 / 64);  // the study's
  EXPECT_GT(wave.lower_bound(1, 1290), 0.4999);            // all of its energy but for 1e-4
  EXPECT_NEAR(wave.lower_bound(5, 258), 0.3788, 0.0005);
  EXPECT_EQ(wave.lower_bound(8, 129), 0);
  EXPECT_EQ(wave.lower_bound(7, 1e9), 0);  // enough heads of rank d - 1
}

TEST(SquareWave, WeightsOfLowRankLayersGrowBeyondAnyMachine) {
  const SquareWave wave(64);
  EXPECT_GT(wave.log10_weight_for(8, kSeparationError), 50);
  // At full rank one head holds all: the plain Cauchy-Schwarz bound on a single weight.
  EXPECT_NEAR(std::pow(10, wave.log10_weight_for(64, kSeparationError)),
              (0.5 - 1.0 / 40) / std::numbers::sqrt2, 1e-12);
}

}  // namespace
}  // namespace rankscope
