#include "train/cpu_tile.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "ops/fused.h"
#include "support/rounding.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

TrialSpec network(int64_t width, int64_t tokens, int64_t layers, int64_t modules, int64_t heads, int64_t rank,
                  int64_t v_rank, int64_t mlp, void (*change)(EncoderWords&) = nullptr) {
  EncoderWords w{.d = width,
                 .layers = layers,
                 .modules = modules,
                 .heads = heads,
                 .rank = rank,
                 .v_rank = v_rank,
                 .scale = 0.7,
                 .mlp = mlp};
  if (change != nullptr) change(w);
  return trial_of(w, tokens);
}

TrialSpec usual(void (*change)(EncoderWords&) = nullptr) { return network(8, 6, 2, 3, 2, 4, 4, 20, change); }

std::vector<TrialSpec> covered() {
  return {usual(),
          network(64, 16, 1, 1, 8, 8, 8, 2048),
          network(9, 5, 3, 1, 3, 2, 4, 7),
          network(1, 1, 1, 1, 1, 1, 1, 1),
          network(16, 33, 1, 2, 16, 1, 1, 515),
          network(12, 4, 2, 1, 1, 12, 5, 600),
          usual([](EncoderWords& w) { w.norm = NormKind::rms; }),
          usual([](EncoderWords& w) { w.norm = NormKind::layer; }),
          usual([](EncoderWords& w) { w.bias = false; }),
          usual([](EncoderWords& w) { w.hard = true; }),
          usual([](EncoderWords& w) { w.answer = 5; })};
}

struct Case {
  at::Tensor parameters, tokens, target;
};

// Unlike a trial's starting point nothing is zero or one here: no term can hide.
Case draw(const TrialSpec& t, int64_t sequences) {
  const ModelSpec& n = t.network;
  at::manual_seed(5);
  Case c;
  c.parameters = at::randn({Layout(n).size()}) / std::sqrt(double(n.width)) + 0.1;
  c.tokens = at::randn({sequences, t.task.n, n.width});
  c.target = at::randn({sequences, t.task.n, n.output.channels});
  return c;
}

struct Result {
  double loss;
  at::Tensor gradient;  // [P]
};

Result by_autograd(const TrialSpec& t, const Case& c, double weight, at::ScalarType type) {
  const ModelSpec& n = t.network;
  const ParameterViews views(Layout(n), c.parameters.to(type), true, true);
  const TaskBatch batch{c.tokens.to(type), {}, c.target.to(type)};
  const at::Tensor loss = (forward({&n}, views, batch) - batch.target).square().sum() * weight;
  Result r{loss.item<double>(), at::zeros({Layout(n).size()}, type)};
  const auto gradients = torch::autograd::grad({loss}, views.leaves());
  for (size_t i = 0; i < gradients.size(); ++i)
    r.gradient.narrow(0, views.offsets()[i], gradients[i].numel()).copy_(gradients[i].flatten());
  return r;
}

Result by_tile(EncoderTile& tile, const TrialSpec& t, const Case& c, double weight, float start = 0) {
  const ModelSpec& n = t.network;
  Result r{0, at::full({Layout(n).size()}, start)};
  r.loss = tile.loss(n, c.tokens.size(0), c.tokens.data_ptr<float>(), c.target.data_ptr<float>(),
                     float(weight), c.parameters.data_ptr<float>(), r.gradient.data_ptr<float>());
  return r;
}

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

TEST(EncoderTile, GivesTheGradientsOfAutograd) {
  for (const TrialSpec& t : covered()) {
    const ModelSpec& n = t.network;
    const Case c = draw(t, 7);
    EncoderTile tile(t, 9);
    const Result exact = by_autograd(t, c, 0.25, at::kDouble), ours = by_tile(tile, t, c, 0.25);
    // The loss is a mean: errors of its terms average out, and it is rounded once more itself.
    const double terms = std::sqrt(double(c.target.numel()));
    EXPECT_NEAR(ours.loss, exact.loss,
                (test::forward_error(n.depth(), n.width) / terms + test::kFloatRounding) * exact.loss);
    // Gradients of parameters are sums over all tokens. Where their terms cancel, what they were is left.
    const double rounding = test::gradient_error(n.depth(), 7 * t.task.n);
    EXPECT_EQ(ours.gradient.numel(), exact.gradient.numel());
    const Layout layout(n);
    for (const Slot& slot : layout.slots()) {
      const auto part = [&](const Result& r) {
        return r.gradient.narrow(0, slot.offset, element_count(slot.parameter)).to(at::kDouble);
      };
      EXPECT_LE(largest(part(ours) - part(exact)),
                rounding * (largest(part(exact)) + 0.01 * largest(exact.gradient)))
          << slot.parameter.name << " of width " << n.width;
    }
  }
}

// At most twice the error of the general path, and a few roundings for where that has hardly any.
TEST(EncoderTile, IsAsExactAsAutogradInSinglePrecision) {
  for (const TrialSpec& t : covered()) {
    const Case c = draw(t, 7);
    EncoderTile tile(t, 7);
    const at::Tensor exact = by_autograd(t, c, 1, at::kDouble).gradient;
    const auto error = [&](const Result& r) {
      return (r.gradient.to(at::kDouble) - exact).norm().item<double>();
    };
    EXPECT_LE(error(by_tile(tile, t, c, 1)), 2 * error(by_autograd(t, c, 1, at::kFloat)) +
                                                 8 * test::kFloatRounding * exact.norm().item<double>());
  }
}

TEST(EncoderTile, AddsToWhatIsThere) {
  const TrialSpec t = usual();
  const Case c = draw(t, 3);
  EncoderTile tile(t, 3);
  const at::Tensor from_zero = by_tile(tile, t, c, 1).gradient, from_two = by_tile(tile, t, c, 1, 2).gradient;
  // A few additions, each rounded at the size of the sum.
  EXPECT_LE(largest(from_two - 2 - from_zero), 4 * test::kFloatRounding * (2 + largest(from_zero)));
}

TEST(EncoderTile, NothingIsLeftOfTheTileBefore) {
  const TrialSpec t = usual(), other = with_heads(t, 8);
  EncoderTile used(t, 6), fresh(t, 6);
  by_tile(used, other, draw(other, 6), 1);
  const Case c = draw(t, 4);
  const Result a = by_tile(used, t, c, 1), b = by_tile(fresh, t, c, 1);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_TRUE(a.gradient.equal(b.gradient));
}

TEST(EncoderTile, LeavesWhatItDoesNotKnowToAutograd) {
  for (const TrialSpec& t : covered()) EXPECT_EQ(EncoderTile::covers(t), fused_kernels());
  EXPECT_FALSE(EncoderTile::covers(small_layer(8, 3, 4, 2)));
  EXPECT_FALSE(EncoderTile::covers(usual([](EncoderWords& w) { w.place = NormPlace::pre; })));
  EXPECT_FALSE(EncoderTile::covers(usual([](EncoderWords& w) { w.norm = NormKind::none; })));
  EXPECT_FALSE(EncoderTile::covers(usual([](EncoderWords& w) { w.positions = 6; })));
  EXPECT_FALSE(EncoderTile::covers(usual([](EncoderWords& w) { w.embed = 12, w.answer = 8; })));
  EXPECT_FALSE(EncoderTile::covers(usual([](EncoderWords& w) { w.mlp = 0; })));
  TrialSpec dropped = usual();
  dropped.protocol.dropout = 0.1;
  EXPECT_FALSE(EncoderTile::covers(dropped));
}

}  // namespace
}  // namespace rankscope
