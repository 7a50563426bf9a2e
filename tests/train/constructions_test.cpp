// Solutions known on paper: their errors are what the theory says.
#include <gtest/gtest.h>

#include <cmath>

#include "train/train_support.h"

namespace rankscope {
namespace {

TrialSpec paper_encoder(double beta, int64_t layers = 1) {
  TrialSpec t = trial_of({.d = 64,
                          .layers = layers,
                          .modules = 1,
                          .heads = 1,
                          .rank = 64,
                          .v_rank = 64,
                          .scale = 1.0 / 8,
                          .mlp = 32},
                         16);
  t.protocol.test_sequences = 1024;
  t.start = "identity";
  t.start_beta = beta;
  return t;
}

TEST(Constructions, ThePerfectEncoderMakesNoError) {
  EXPECT_LT(start_error(paper_encoder(1e6)).mse, 1e-4);
  EXPECT_LT(start_error(paper_encoder(1e6, 3)).mse, 1e-4);  // later layers pass it on
}

// Two orthonormal points, d = 64: 0.0170, 0.00573, 0.00174 at beta = 100, 300, 1000.
TEST(Constructions, OneFullRankHeadIsLimitedByItsTemperature) {
  for (const auto& [beta, error] : {std::pair{100.0, 0.0170}, {300.0, 0.00573}, {1000.0, 0.00174}}) {
    TrialSpec t = small_layer(64, 2, 64, 1);
    t.protocol.test_sequences = 40000;
    t.start = "identity";
    t.start_beta = beta;
    const Score s = start_error(t);
    EXPECT_NEAR(s.mse, error, 3 * s.stderr_ + 0.5e-4 * (error > 0.01 ? 1 : 0.1)) << beta;
  }
}

// Self-attention, farthest of 16 independent points, d = 64: .053, .018, .0052.
TEST(Constructions, AFullRankHeadAmongSixteenPointsIsLimitedByItsTemperature) {
  for (const auto& [beta, error] : {std::pair{100.0, 0.053}, {300.0, 0.018}, {1000.0, 0.0052}}) {
    TrialSpec t = small_layer(64, 16, 64, 1);
    t.task = {.name = "farthest", .d = 64, .n = 16};
    t.protocol.test_sequences = 2048;
    t.start = "identity";
    t.start_beta = beta;
    const Score s = start_error(t);
    EXPECT_NEAR(s.mse, error, 3 * s.stderr_ + (error > 0.01 ? 5e-4 : 5e-5)) << beta;
  }
}

TEST(Constructions, AHardFullRankHeadIsExact) {
  TrialSpec t = small_layer(16, 4, 16, 1);
  t.network.blocks[0].attention().variant = "hard";
  t.start = "identity";
  EXPECT_LT(start_error(t).mse, 1e-12);
}

TEST(Constructions, ATruncatedIdentityIsWorseTheSmallerItsRank) {
  double before = 0;
  for (const int64_t rank : {16, 8, 4, 1}) {
    TrialSpec t = small_layer(16, 2, rank, 1);
    t.protocol.test_sequences = 4000;
    t.start = "identity";
    t.start_beta = 1000;
    const double error = start_error(t).mse;
    EXPECT_GT(error, before);
    before = error;
  }
}

}  // namespace
}  // namespace rankscope
