// The stack that takes everything, on the CPU beside the CPU's own, and on CUDA where there is one.
#include "train/plain_stack.h"

#include <ATen/ATen.h>

#include "kernels/cuda/train.h"
#include "train/losses.h"

namespace rankscope {
namespace {

constexpr int64_t kSteps = 8;

/// One tile of the CPU's own stack, so that both draw the same masks.
TrialSpec one_tile() {
  TrialSpec t = small_encoder();
  t.protocol.batch = 4;
  t.protocol.steps = 2 * kSteps;
  return t;
}

struct Asked {
  const char* name;
  double dropout, l2, clip;
};

TrialSpec with(const Asked& asked) {
  TrialSpec t = one_tile();
  t.protocol.dropout = asked.dropout;
  t.protocol.l2 = asked.l2;
  t.protocol.clip = asked.clip;
  return t;
}

const std::vector<Asked>& protocols() {
  static const std::vector<Asked> all{
      {"nothing", 0, 0, 0}, {"dropout", 0.2, 0, 0}, {"penalty", 0, 0.1, 0}, {"clip", 0, 0, 0.01}};
  return all;
}

std::vector<double> plain_losses(const TrialSpec& t, const std::string& device) {
  return losses_of(*make_plain_stack({t}, {fresh_state(t)}, {.device = device}), 1, 0, kSteps);
}

TEST(PlainStack, LosesWhatTheCpusOwnStackLoses) {
  for (const Asked& asked : protocols()) {
    SCOPED_TRACE(asked.name);
    const TrialSpec t = with(asked);
    expect_close(losses({t}, "cpu", 0, kSteps), plain_losses(t, "cpu"), allowed(t, kSteps, kFloat));
  }
}

TEST(PlainStack, EveryOptionOfTheProtocolChangesTheLoss) {
  const std::vector<double> without = plain_losses(with(protocols().front()), "cpu");
  for (const Asked& asked : protocols())
    if (asked.dropout + asked.l2 + asked.clip > 0) {
      EXPECT_NE(plain_losses(with(asked), "cpu").back(), without.back());
    }
}

TEST(PlainStack, ScoresWhatTheCpusOwnStackScores) {
  const TrialSpec t = one_tile();
  const Score ours = make_plain_stack({t}, {fresh_state(t)}, {})->evaluate().front(), theirs = start_error(t);
  const double off = allowed(t, 1, kFloat).front();
  EXPECT_NEAR(ours.mse, theirs.mse, off);
  EXPECT_NEAR(ours.stderr_, theirs.stderr_, off);
}

TEST(PlainStack, StoppedAndContinuedIsTheSame) {
  const TrialSpec t = with(protocols()[1]);
  const auto whole = make_plain_stack({t}, {fresh_state(t)}, {});
  const std::vector<double> once = losses_of(*whole, 1, 0, kSteps);
  const auto half = make_plain_stack({t}, {fresh_state(t)}, {});
  losses_of(*half, 1, 0, 3);
  const auto rest = make_plain_stack({t}, {half->state(0)}, {});
  const std::vector<double> again = losses_of(*rest, 1, 0, kSteps - 3);
  for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i], once[i + 3]) << i;
  EXPECT_EQ(rest->state(0).parameters, whole->state(0).parameters);
}

TEST(PlainStack, ADroppedTrialStays) {
  const TrialSpec t = one_tile();
  const auto stack = make_plain_stack({t, t}, {fresh_state(t), fresh_state(t)}, {});
  stack->drop(0);
  std::vector<double> sums(2);
  stack->advance(2, sums);
  EXPECT_EQ(sums[0], 0);
  EXPECT_GT(sums[1], 0);
  EXPECT_EQ(stack->state(0).parameters, fresh_state(t).parameters);
}

TEST(PlainStack, OnCudaTrainsAsOnTheCpu) {
  if (!at::hasCUDA() || !cuda::available()) GTEST_SKIP() << "no CUDA in this build, or no GPU";
  for (const Asked& asked : protocols()) {
    SCOPED_TRACE(asked.name);
    const TrialSpec t = with(asked);
    expect_close(losses({t}, "cpu", 0, kSteps), losses({t}, "cuda", 0, kSteps), allowed(t, kSteps, kFloat));
  }
}

}  // namespace
}  // namespace rankscope
