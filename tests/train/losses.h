// Losses of a trial step by step, and how far two orders of the same arithmetic may drift apart.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/philox.h"
#include "train/train_support.h"

namespace rankscope {

/// Of trial `which` of the stack's `trials`.
inline std::vector<double> losses_of(Stack& stack, size_t trials, size_t which, int64_t steps) {
  std::vector<double> out;
  for (int64_t s = 0; s < steps; ++s) {
    std::vector<double> sums(trials);
    stack.advance(1, sums);
    out.push_back(sums[which]);
  }
  return out;
}

inline constexpr double kFloat = 0x1p-24, kTf32 = 0x1p-11;  // half a step of the mantissa: one rounding

inline std::vector<double> losses_from(const std::vector<TrialSpec>& trials,
                                       const std::vector<TrainState>& states, const std::string& device,
                                       size_t which, int64_t steps, bool tf32 = false) {
  return losses_of(*make_stack(trials, states, {.device = device, .threads = 2, .tf32 = tf32}), trials.size(),
                   which, steps);
}

inline std::vector<double> losses(const std::vector<TrialSpec>& trials, const std::string& device,
                                  size_t which, int64_t steps, bool tf32 = false) {
  std::vector<TrainState> states;
  for (const TrialSpec& t : trials) states.push_back(fresh_state(t));
  return losses_from(trials, states, device, which, steps, tf32);
}

/// The same trial from a start of which every parameter is off by up to one rounding.
inline std::vector<double> nudged(const TrialSpec& t, int64_t steps, double rounding, uint64_t seed) {
  TrainState state = fresh_state(t);
  const Philox random{seed, 0, 0};
  for (size_t i = 0; i < state.parameters.size(); ++i)
    state.parameters[i] *= static_cast<float>(1 + rounding * (2 * random.uniform(i) - 1));
  return losses_from({t}, {state}, "cpu", 0, steps);
}

/// How far two orders of the same arithmetic may drift apart, by step: what a nudge of the start by one
/// rounding does to the losses on the CPU (the largest of four so far), once for every step, because each
/// rounds anew; and the sums of the loss itself, off by the roundings of a logarithm of their terms, 16 at
/// most.
inline std::vector<double> allowed(const TrialSpec& t, int64_t steps, double rounding) {
  // In float32 a nudge below its own step would be lost: two of them, which the parameters can hold.
  const double nudge = std::max(rounding, 2 * kFloat);
  const std::vector<double> plain = losses({t}, "cpu", 0, steps);
  std::vector<double> out(plain.size(), 0.0);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const std::vector<double> other = nudged(t, steps, nudge, seed);
    for (size_t s = 0; s < out.size(); ++s) out[s] = std::max(out[s], std::abs(other[s] - plain[s]));
  }
  for (size_t s = 1; s < out.size(); ++s) out[s] = std::max(out[s], out[s - 1]);
  for (size_t s = 0; s < out.size(); ++s)
    out[s] = static_cast<double>(s + 1) * out[s] + 16 * rounding * std::abs(plain[s]);
  return out;
}

inline void expect_close(const std::vector<double>& a, const std::vector<double>& b,
                         const std::vector<double>& off) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t s = 0; s < a.size(); ++s) EXPECT_NEAR(a[s], b[s], off[s]) << "step " << s;
}

}  // namespace rankscope
