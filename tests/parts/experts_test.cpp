// A mixture of experts against the formula of each expert by itself.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/experts.h"
#include "model/random_source.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::tiny_spec;

ModelSpec mixture(double experts, double active, bool gated) {
  ModelSpec spec = tiny_spec(NormPlace::pre, 1);
  BranchSpec& b = *spec.blocks[0].mlp_branch();
  b.part = {"experts",
            MlpSpec{.width = 10, .activation = Activation::silu},
            {{"experts", experts}, {"active", active}}};
  if (!gated) b.part.options["gated"] = 0;
  return spec;
}

class Seen : public BlockObserver {
 public:
  bool wants(std::string_view) const override { return true; }
  void see(std::string_view site, const at::Tensor& t, const TilePlace&) override {
    if (site == "ln2.hook_normalized") read = t.clone();
    if (site == "mlp.hook_router") router = t.clone();
    if (site == "hook_mlp_out") out = t.clone();
  }
  at::Tensor read, router, out;
  std::unique_ptr<WeightSource> source;  // experts are drawn when they are fetched
};

Seen run(const ModelSpec& spec, Weights& w) {
  Seen seen;
  seen.source = random_source(spec, 5, "float64", "cpu");
  w = seen.source->load("blocks.0");
  const Batch batch = make_batches(random_samples({9, 4}, 50), spec, 8).front();
  run_block(embed(batch, spec, seen.source->load("embed"), *seen.source), spec.blocks[0], w, batch, seen);
  return seen;
}

// Token by token, expert by expert; sums of at most 40 terms in double precision.
TEST(Experts, AddUpTheBestOnesWeighedByTheirSoftmax) {
  for (const bool gated : {true, false}) {
    Weights w;
    const Seen seen = run(mixture(5, 3, gated), w);
    for (int64_t i = 0; i < seen.read.size(0); ++i) {
      const at::Tensor x = seen.read[i], scores = at::mv(w.get("mlp.W_router"), x);
      EXPECT_LT((scores - seen.router[i]).abs().max().item<double>(), 1e-12);
      const auto [best, which] = at::topk(scores, 3);
      const at::Tensor share = at::softmax(best, -1);
      at::Tensor out = at::zeros_like(x);
      for (int64_t k = 0; k < 3; ++k) {
        const std::string expert = "mlp.experts." + std::to_string(which[k].item<int64_t>());
        const auto map = [&](const char* name) { return w.fetch(expert + name); };
        const at::Tensor in = at::mv(map(".W_in"), x);
        const at::Tensor hidden = gated ? at::silu(at::mv(map(".W_gate"), x)) * in : at::silu(in);
        out = out + share[k] * at::mv(map(".W_out"), hidden);
      }
      EXPECT_LT((out - seen.out[i]).abs().max().item<double>(), 1e-12 * (1 + out.abs().max().item<double>()));
    }
  }
}

// Sigmoids choose, with a correction and by groups; the shares are scaled sigmoids without it.
TEST(Experts, GroupsAndACorrectionDecideTheChoiceAndNotTheShare) {
  const Sharing sharing{.active = 2,
                        .sigmoid = true,
                        .normed = true,
                        .groups = 2,
                        .active_groups = 1,
                        .correction = "c",
                        .scale = 2.5};
  Weights w;
  w.set("c", at::tensor(std::vector<double>{0.0, 0.0, 0.9, 0.0}, at::kDouble));
  // Group {0, 1} has the larger scores; the correction lifts group {2, 3} above it.
  const at::Tensor scores = at::tensor(std::vector<double>{1.0, 0.5, 0.2, 0.1}, at::kDouble).unsqueeze(0);
  const at::Tensor shares = shares_of(scores, sharing, w)[0];
  const double a = 1 / (1 + std::exp(-0.2)), b = 1 / (1 + std::exp(-0.1));
  EXPECT_EQ(shares[0].item<double>(), 0);
  EXPECT_EQ(shares[1].item<double>(), 0);
  EXPECT_NEAR(shares[2].item<double>(), 2.5 * a / (a + b), 1e-15);
  EXPECT_NEAR(shares[3].item<double>(), 2.5 * b / (a + b), 1e-15);
}

TEST(Experts, OneThatIsOffWritesZeroAndLeavesTheOthersTheirShare) {
  Sharing sharing{.active = 2};
  const at::Tensor scores = at::tensor(std::vector<double>{3.0, 2.0, 1.0}, at::kDouble).unsqueeze(0);
  const at::Tensor with = shares_of(scores, sharing, Weights())[0];
  sharing.off = {0};
  const at::Tensor without = shares_of(scores, sharing, Weights())[0];
  EXPECT_EQ(without[0].item<double>(), 0);
  EXPECT_EQ(without[1].item<double>(), with[1].item<double>());
}

// Trained dense, scanned sparse: the same numbers, but for the order of at most 5 terms.
TEST(Experts, OnlyThoseThatAreTakenHaveToRun) {
  const ModelSpec spec = mixture(5, 3, true);
  const auto source = random_source(spec, 5, "float64", "cpu");
  const Weights w = source->load("blocks.0");
  const Program program = program_of(*spec.blocks[0].mlp_branch(), spec.width);
  const at::Tensor x = at::randn({11, spec.width}, at::kDouble);
  const at::Tensor shares = shares_of(at::linear(x, w.get("mlp.W_router")), {.active = 3}, w);
  const Operation& o = program.operations.back();
  const at::Tensor dense = run_experts(x, shares, {}, o, w, true),
                   sparse = run_experts(x, shares, {}, o, w, false);
  EXPECT_LT((dense - sparse).abs().max().item<double>(), 1e-14 * dense.abs().max().item<double>());
}

// The one that serves all, weighed by a sigmoid of the token, trained dense and scanned sparse.
TEST(Experts, OneThatAllTakeMayHaveAGate) {
  ModelSpec spec = mixture(5, 3, true);
  auto& options = spec.blocks[0].mlp_branch()->part.options;
  Weights without_w, with_w;
  const Seen without = run(spec, without_w);
  options["shared"] = 7;
  options["shared_gate"] = 1;
  const Seen with = run(spec, with_w);
  const auto map = [&](const char* name) { return with_w.fetch(std::string("mlp.shared.") + name); };
  const at::Tensor& x = with.read;
  const at::Tensor shared =
      at::linear(at::silu(at::linear(x, map("W_gate"))) * at::linear(x, map("W_in")), map("W_out"));
  const at::Tensor gate = at::sigmoid(at::linear(x, with_w.get("mlp.W_shared_gate")));
  const double size = with.out.abs().max().item<double>();
  EXPECT_LT((with.out - without.out - shared * gate).abs().max().item<double>(), 1e-13 * size);
  const Program program = program_of(*spec.blocks[0].mlp_branch(), spec.width);
  const at::Tensor shares = shares_of(with.router, {.active = 3}, with_w);
  const at::Tensor dense = run_experts(x, shares, gate, program.operations.back(), with_w, true);
  EXPECT_LT((dense - with.out).abs().max().item<double>(), 1e-13 * size);
}

TEST(Experts, OneOfOneIsAGatedMlp) {
  Weights w;
  const Seen seen = run(mixture(1, 1, true), w);
  const at::Tensor plain = at::linear(at::silu(at::linear(seen.read, w.fetch("mlp.experts.0.W_gate"))) *
                                          at::linear(seen.read, w.fetch("mlp.experts.0.W_in")),
                                      w.fetch("mlp.experts.0.W_out"));
  EXPECT_LT((plain - seen.out).abs().max().item<double>(), 1e-13 * plain.abs().max().item<double>());
}

}  // namespace
}  // namespace rankscope
