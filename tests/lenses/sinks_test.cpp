#include <gtest/gtest.h>

#include <cmath>

#include "base/stats.h"
#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope::testing {
namespace {

struct Sink {
  double mass = -1, stderr_ = 0, uniform = 0;
  int64_t position = 0, n = 0;
};

/// The obvious way: average what each key receives over the samples in which it is a candidate, then the
/// largest.
Sink sink_of(const std::vector<at::Tensor>& patterns, int64_t head, MaskKind mask) {
  Sink best;
  for (int64_t j = 0; j < 1000; ++j) {
    std::vector<double> received, uniform;
    for (const at::Tensor& p : patterns) {
      const int64_t T = p.size(2);
      if (j >= T || (mask.causal && 2 * j >= T)) continue;
      received.push_back(reference::received(p[head], j, mask.causal, mask.window));
      uniform.push_back(
          reference::received(reference::uniform(T, mask.causal, mask.window), j, mask.causal, mask.window));
    }
    if (received.empty()) break;
    const Estimate e = arithmetic_mean(received);
    if (e.value > best.mass)
      best = {e.value, e.stderr_, arithmetic_mean(uniform).value, j, static_cast<int64_t>(received.size())};
  }
  return best;
}

class Sinks : public ::testing::TestWithParam<MaskKind> {};

TEST_P(Sinks, MatchTheReferenceOverSamplesOfDifferentLengthWholeAndInTiles) {
  at::manual_seed(1);
  const MaskKind mask = GetParam();
  std::vector<at::Tensor> patterns;
  for (const int64_t T : {5, 12, 12, 3, 1, 8}) patterns.push_back(random_pattern(2, T, mask));
  for (const int64_t rows : {0, 1, 5}) {
    const Collected got = see_patterns("sinks", patterns, mask, rows);
    for (int h = 0; h < 2; ++h) {
      const Sink expected = sink_of(patterns, h, mask);
      EXPECT_NEAR(got.total("sink_mass", h).value, expected.mass, 1e-13);
      EXPECT_EQ(got.total("sink_mass", h).n, expected.n);
      const double spread = got.total("sink_mass", h).stderr_;
      EXPECT_TRUE(expected.n > 1 ? std::fabs(spread - expected.stderr_) < 1e-13 : std::isnan(spread));
      EXPECT_EQ(got.total("sink_position", h).value, static_cast<double>(expected.position));
      EXPECT_NEAR(got.total("sink_uniform", h).value, expected.uniform, 1e-13);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Masks, Sinks,
                         ::testing::Values(MaskKind{}, MaskKind{true, 0}, MaskKind{true, 3},
                                           MaskKind{false, 4}));

TEST(Sinks, ACausalSinkAtPositionZeroIsFound) {
  at::manual_seed(2);
  std::vector<at::Tensor> patterns;
  for (int s = 0; s < 3; ++s) {
    at::Tensor p = random_pattern(2, 16, {true}, 0.5) * 0.2;
    p.select(0, 0).select(1, 0).add_(0.8);  // head 0 rests on position 0
    p.select(0, 1).copy_(at::eye(16));      // head 1 looks at itself
    patterns.push_back(p);
  }
  const Collected got = see_patterns("sinks", patterns, {true});
  EXPECT_EQ(got.total("sink_position", 0).value, 0);
  EXPECT_GT(got.total("sink_mass", 0).value, 0.8);
  EXPECT_LT(got.total("sink_mass", 1).value, 0.2);
  EXPECT_EQ(got.total("sink_ratio").value, 0.5);
  EXPECT_EQ(got.total("sink_ratio").n, 3);
}

TEST(Sinks, TheRatioCountsHeadsAboveTheThresholdItIsGiven) {
  // Of four keys, the first gets 0.25 + 0.1 h from every query of head h.
  at::Tensor p = at::empty({4, 4, 4}, at::kDouble);
  for (int64_t h = 0; h < 4; ++h) {
    const double first = 0.25 + 0.1 * static_cast<double>(h);
    p[h].fill_((1 - first) / 3);
    p[h].select(1, 0).fill_(first);
  }
  const Packed packed({4});
  const Packing packing = packed.packing();
  for (const auto& [threshold, ratio] : {std::pair{0.05, 0.75}, {0.15, 0.5}, {0.25, 0.25}, {0.35, 0.0}}) {
    LensContext context = any_context();
    context.sink = threshold;
    Seeing seeing(lens_named("sinks"), context);
    seeing.tile({p.unsqueeze(0), {0, 0, 4}, false, 0, packing});
    EXPECT_EQ(seeing.finish().total("sink_ratio").value, ratio) << threshold;
  }
}

TEST(Sinks, UniformCausalAttentionIsNoSink) {
  // Position 0 receives 1/(i + 1) from query i: far above 1/T, and no sink.
  const at::Tensor u = reference::uniform(32, true, 0).unsqueeze(0);
  const Collected got = see_patterns("sinks", {u}, {true});
  EXPECT_EQ(got.total("sink_position", 0).value, 0);
  EXPECT_NEAR(got.total("sink_mass", 0).value, got.total("sink_uniform", 0).value, 1e-14);
  EXPECT_EQ(got.total("sink_ratio").value, 0);
}

TEST(Sinks, TheMeanOverSamplesComesBeforeTheMaximum) {
  // Each sample has a full sink of its own, at different keys: no sink of the head.
  std::vector<at::Tensor> patterns;
  for (int64_t s = 0; s < 4; ++s) {
    at::Tensor p = at::zeros({1, 4, 4});
    p.select(2, s).fill_(1);
    patterns.push_back(p);
  }
  EXPECT_NEAR(see_patterns("sinks", patterns, {}).total("sink_mass", 0).value, 0.25, 1e-15);
}

TEST(Sinks, OfFewerQueriesThanKeysAverageOverTheQueries) {
  at::manual_seed(4);
  const at::Tensor p = at::softmax(at::randn({1, 3, 7}, at::kDouble) * 2, -1), received = p[0].mean(0);
  const Collected got = see_patterns("sinks", {p}, {});
  EXPECT_NEAR(got.total("sink_mass", 0).value, received.max().item<double>(), 1e-15);
  EXPECT_EQ(got.total("sink_position", 0).value, static_cast<double>(received.argmax().item<int64_t>()));
  EXPECT_NEAR(got.total("sink_uniform", 0).value, 1.0 / 7, 1e-15);
}

TEST(Sinks, LateKeysOfACausalModelAreNoCandidates) {
  at::Tensor p = at::eye(8).unsqueeze(0);  // the last key is seen by the last query alone, which gives it all
  EXPECT_LT(see_patterns("sinks", {p}, {true}).total("sink_position", 0).value, 4);
  EXPECT_NEAR(see_patterns("sinks", {p}, {true}).total("sink_mass", 0).value, 0.2, 1e-15);
}

}  // namespace
}  // namespace rankscope::testing
