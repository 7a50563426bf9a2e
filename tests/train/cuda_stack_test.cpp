// What training on CUDA promises; skipped where there is no GPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/train.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

class CudaTraining : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA() || !cuda::available()) GTEST_SKIP() << "no CUDA in this build, or no GPU";
  }
};

std::vector<double> losses(const std::vector<TrialSpec>& trials, const std::string& device, size_t which,
                           int64_t steps, bool tf32 = false) {
  std::vector<TrainState> states;
  for (const TrialSpec& t : trials) states.push_back(fresh_state(t));
  const auto stack = make_stack(trials, states, {.device = device, .threads = 2, .tf32 = tf32});
  std::vector<double> out;
  for (int64_t s = 0; s < steps; ++s) {
    std::vector<double> sums(trials.size());
    stack->advance(1, sums);
    out.push_back(sums[which]);
  }
  return out;
}

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
  for (size_t s = 0; s < alone.size(); ++s) EXPECT_NEAR(alone[s], stacked[s], 1e-5) << s;
}

TEST_F(CudaTraining, TheFirstStepsAreTheCpus) {
  for (TrialSpec t : {small_encoder(), small_layer(8, 3, 4, 2)}) {
    t.protocol.steps = 60;
    const auto cpu = losses({t}, "cpu", 0, 10), gpu = losses({t}, "cuda", 0, 10);
    for (size_t s = 0; s < cpu.size(); ++s) EXPECT_NEAR(cpu[s], gpu[s], 1e-4) << s;
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
  for (size_t s = 0; s < cpu.size(); ++s) EXPECT_NEAR(cpu[s], gpu[s], 2e-3 * cpu[s]) << s;
}

TEST_F(CudaTraining, AloneAndStackedAgreeInTf32) {
  const TrialSpec t = wide_encoder();
  TrialSpec other = with_heads(t, 64);
  other.init_seed = other.data_seed = 9;
  const auto alone = losses({t}, "cuda", 0, 5, true), stacked = losses({other, t}, "cuda", 1, 5, true);
  for (size_t s = 0; s < alone.size(); ++s) EXPECT_NEAR(alone[s], stacked[s], 1e-5) << s;
}

// What no fused route knows is interpreted step by step, captured as a graph like the rest.
TEST_F(CudaTraining, AnUnknownVariantTrainsAsOnTheCpu) {
  TrialSpec t = small_encoder();
  t.protocol.steps = 60;
  for (BlockSpec& b : t.network.blocks) b.attention().causal = true;
  const auto cpu = losses({t}, "cpu", 0, 10), gpu = losses({with_seed(t, 5, 1), t}, "cuda", 1, 10);
  for (size_t s = 0; s < cpu.size(); ++s) EXPECT_NEAR(cpu[s], gpu[s], 1e-4) << s;
}

TEST_F(CudaTraining, TheTestSetIsTheCpus) {
  const TrialSpec t = small_encoder();
  const Score cpu = start_error(t);
  const Score gpu = make_stack({t}, {fresh_state(t)}, {.device = "cuda"})->evaluate().front();
  EXPECT_NEAR(cpu.mse, gpu.mse, 1e-5);
  EXPECT_NEAR(cpu.stderr_, gpu.stderr_, 1e-5);
}

TEST_F(CudaTraining, ADroppedTrialLeavesTheOthersAlone) {
  TrialSpec bad = small_encoder(), good = with_seed(bad, 5, 4);
  bad.protocol.lr = 1e30;
  const auto alone = losses({good}, "cuda", 0, 30), beside = losses({bad, good}, "cuda", 1, 30);
  for (size_t s = 0; s < alone.size(); ++s) EXPECT_NEAR(alone[s], beside[s], 1e-5) << s;
}

}  // namespace
}  // namespace rankscope
