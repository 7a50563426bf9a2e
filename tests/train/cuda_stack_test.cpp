// What training on CUDA promises; skipped where there is no GPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "kernels/cuda/train.h"
#include "train/losses.h"

namespace rankscope {
namespace {

class CudaTraining : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA() || !cuda::available()) GTEST_SKIP() << "no CUDA in this build, or no GPU";
  }
};

TrialSpec with_seed(TrialSpec t, uint64_t seed, int64_t heads) {
  t = with_heads(t, heads);
  t.init_seed = t.data_seed = seed;
  return t;
}

TEST_F(CudaTraining, AloneAndStackedAgreeOverFiftySteps) {
  TrialSpec t = small_encoder();
  t.protocol.steps = 60;
  const auto alone = losses({t}, "cuda", 0, 50);
  const auto stacked = losses({with_seed(t, 5, 1), t, with_seed(t, 6, 8)}, "cuda", 1, 50);
  expect_close(alone, stacked, allowed(t, 50, kFloat));
}

TEST_F(CudaTraining, TheFirstStepsAreTheCpus) {
  for (TrialSpec t : {small_encoder(), small_layer(8, 3, 4, 2)}) {
    t.protocol.steps = 60;
    const auto cpu = losses({t}, "cpu", 0, 10), gpu = losses({t}, "cuda", 0, 10);
    expect_close(cpu, gpu, allowed(t, 10, kFloat));
  }
}

// Wide enough for the fused MLP, which computes in TF32 alone.
TrialSpec wide_encoder() {
  TrialSpec t = trial_of({.d = 64, .heads = 8, .rank = 8, .v_rank = 8, .mlp = 256});
  t.protocol.steps = 60;
  return t;
}

TEST_F(CudaTraining, Tf32FollowsTheCpuAsFarAsItsElevenBitsReach) {
  const TrialSpec t = wide_encoder();
  const auto cpu = losses({t}, "cpu", 0, 10), gpu = losses({t}, "cuda", 0, 10, true);
  expect_close(cpu, gpu, allowed(t, 10, kTf32));
}

TEST_F(CudaTraining, AloneAndStackedAgreeInTf32) {
  const TrialSpec t = wide_encoder();
  TrialSpec other = with_heads(t, 64);
  other.init_seed = other.data_seed = 9;
  const auto alone = losses({t}, "cuda", 0, 5, true), stacked = losses({other, t}, "cuda", 1, 5, true);
  expect_close(alone, stacked, allowed(t, 5, kFloat));  // factors are rounded alike: sums alone differ
}

// What no fused route knows is interpreted step by step, captured as a graph like the rest.
TEST_F(CudaTraining, AnUnknownVariantTrainsAsOnTheCpu) {
  TrialSpec t = small_encoder();
  t.protocol.steps = 60;
  for (BlockSpec& b : t.network.blocks) b.attention().causal = true;
  const auto cpu = losses({t}, "cpu", 0, 10), gpu = losses({with_seed(t, 5, 1), t}, "cuda", 1, 10);
  expect_close(cpu, gpu, allowed(t, 10, kFloat));
}

TEST_F(CudaTraining, TheTestSetIsTheCpus) {
  const TrialSpec t = small_encoder();
  const Score cpu = start_error(t);
  const Score gpu = make_stack({t}, {fresh_state(t)}, {.device = "cuda"})->evaluate().front();
  const double off = allowed(t, 1, kFloat).front();  // of one pass over other data of the same law
  EXPECT_NEAR(cpu.mse, gpu.mse, off);
  EXPECT_NEAR(cpu.stderr_, gpu.stderr_, off);
}

TEST_F(CudaTraining, ADroppedTrialLeavesTheOthersAlone) {
  TrialSpec bad = small_encoder(), good = with_seed(bad, 5, 4);
  bad.protocol.lr = 1e30;
  const auto alone = losses({good}, "cuda", 0, 30), beside = losses({bad, good}, "cuda", 1, 30);
  expect_close(alone, beside, allowed(good, 30, kFloat));
}

}  // namespace
}  // namespace rankscope
