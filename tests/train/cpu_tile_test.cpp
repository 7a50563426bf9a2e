#include "train/cpu_tile.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "ops/fused.h"
#include "train/forward.h"

namespace rankscope {
namespace {

NetworkSpec network(int64_t width, int64_t tokens, int64_t layers, int64_t modules, int64_t heads,
                    int64_t rank, int64_t v_rank, int64_t mlp) {
  return {.token_width = width,
          .answer_width = width,
          .tokens = tokens,
          .layers = layers,
          .modules = modules,
          .heads = heads,
          .rank = rank,
          .v_rank = v_rank,
          .score_scale = 0.7,
          .mlp = mlp};
}

std::vector<NetworkSpec> covered() {
  std::vector<NetworkSpec> out{network(64, 16, 1, 1, 8, 8, 8, 2048), network(8, 6, 2, 3, 2, 4, 4, 20),
                               network(9, 5, 3, 1, 3, 2, 4, 7),      network(1, 1, 1, 1, 1, 1, 1, 1),
                               network(16, 33, 1, 2, 16, 1, 1, 515), network(12, 4, 2, 1, 1, 12, 5, 600)};
  for (const NormKind norm : {NormKind::rms, NormKind::layer}) {
    out.push_back(out[1]);
    out.back().norm = norm;
  }
  out.push_back(out[1]);
  out.back().bias = false;
  out.push_back(out[1]);
  out.back().hard = true;
  out.push_back(out[1]);
  out.back().answer_width = 5;
  return out;
}

struct Case {
  at::Tensor parameters, tokens, target;
};

// Unlike a trial's starting point nothing is zero or one here: no term can hide.
Case draw(const NetworkSpec& n, int64_t sequences) {
  at::manual_seed(5);
  Case c;
  c.parameters = at::randn({Layout(n).size()}) / std::sqrt(double(n.width())) + 0.1;
  c.tokens = at::randn({sequences, n.tokens, n.width()});
  c.target = at::randn({sequences, n.tokens, n.answer_width});
  return c;
}

struct Result {
  double loss;
  at::Tensor gradient;  // [P]
};

Result by_autograd(const NetworkSpec& n, const Case& c, double weight, at::ScalarType type) {
  const ParameterViews views(Layout(n), c.parameters.to(type), true);
  const TaskBatch batch{c.tokens.to(type), {}, c.target.to(type), false};
  const at::Tensor loss = (forward({&n}, views, batch) - batch.target).square().sum() * weight;
  Result r{loss.item<double>(), at::zeros({Layout(n).size()}, type)};
  const auto gradients = torch::autograd::grad({loss}, views.leaves());
  for (size_t i = 0; i < gradients.size(); ++i)
    r.gradient.narrow(0, views.offsets()[i], gradients[i].numel()).copy_(gradients[i].flatten());
  return r;
}

Result by_tile(EncoderTile& tile, const NetworkSpec& n, const Case& c, double weight, float start = 0) {
  Result r{0, at::full({Layout(n).size()}, start)};
  r.loss = tile.loss(n, c.tokens.size(0), c.tokens.data_ptr<float>(), c.target.data_ptr<float>(),
                     float(weight), c.parameters.data_ptr<float>(), r.gradient.data_ptr<float>());
  return r;
}

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

TEST(EncoderTile, GivesTheGradientsOfAutograd) {
  for (const NetworkSpec& n : covered()) {
    const Case c = draw(n, 7);
    EncoderTile tile(n, 9);
    const Result exact = by_autograd(n, c, 0.25, at::kDouble), ours = by_tile(tile, n, c, 0.25);
    EXPECT_NEAR(ours.loss, exact.loss, 1e-5 * exact.loss);
    EXPECT_EQ(ours.gradient.numel(), exact.gradient.numel());
    const Layout layout(n);
    for (const Slot& slot : layout.slots()) {
      const auto part = [&](const Result& r) {
        return r.gradient.narrow(0, slot.offset, element_count(slot.parameter)).to(at::kDouble);
      };
      EXPECT_LE(largest(part(ours) - part(exact)),
                1e-5 * (largest(part(exact)) + 0.01 * largest(exact.gradient)))
          << slot.parameter.name << " of width " << n.width();
    }
  }
}

// At most twice the error of the general path, and a few roundings for where that has hardly any.
TEST(EncoderTile, IsAsExactAsAutogradInSinglePrecision) {
  for (const NetworkSpec& n : covered()) {
    const Case c = draw(n, 7);
    EncoderTile tile(n, 7);
    const at::Tensor exact = by_autograd(n, c, 1, at::kDouble).gradient;
    const auto error = [&](const Result& r) {
      return (r.gradient.to(at::kDouble) - exact).norm().item<double>();
    };
    EXPECT_LE(error(by_tile(tile, n, c, 1)),
              2 * error(by_autograd(n, c, 1, at::kFloat)) + 5e-7 * exact.norm().item<double>());
  }
}

TEST(EncoderTile, AddsToWhatIsThere) {
  const NetworkSpec n = covered()[1];
  const Case c = draw(n, 3);
  EncoderTile tile(n, 3);
  const at::Tensor from_zero = by_tile(tile, n, c, 1).gradient, from_two = by_tile(tile, n, c, 1, 2).gradient;
  EXPECT_LE(largest(from_two - 2 - from_zero), 1e-5 * (2 + largest(from_zero)));
}

TEST(EncoderTile, NothingIsLeftOfTheTileBefore) {
  const NetworkSpec n = covered()[1];
  NetworkSpec other = n;
  other.heads = 8;
  other.rank = other.v_rank = 1;
  EncoderTile used(n, 6), fresh(n, 6);
  by_tile(used, other, draw(other, 6), 1);
  const Case c = draw(n, 4);
  const Result a = by_tile(used, n, c, 1), b = by_tile(fresh, n, c, 1);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_TRUE(a.gradient.equal(b.gradient));
}

TEST(EncoderTile, LeavesWhatItDoesNotKnowToAutograd) {
  const NetworkSpec known = covered()[1];
  EXPECT_EQ(EncoderTile::covers(known), fused_kernels());
  const auto refused = [&](auto change) {
    NetworkSpec n = known;
    change(n);
    return !EncoderTile::covers(n);
  };
  EXPECT_TRUE(refused([](NetworkSpec& n) { n.encoder = false; }));
  EXPECT_TRUE(refused([](NetworkSpec& n) { n.place = NormPlace::pre; }));
  EXPECT_TRUE(refused([](NetworkSpec& n) { n.norm = NormKind::none; }));
  EXPECT_TRUE(refused([](NetworkSpec& n) { n.positions = Positions::additive; }));
  EXPECT_TRUE(refused([](NetworkSpec& n) { n.embed = 12; }));
  EXPECT_TRUE(refused([](NetworkSpec& n) { n.mlp = 0; }));
}

}  // namespace
}  // namespace rankscope
