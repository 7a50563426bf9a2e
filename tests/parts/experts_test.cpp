// A mixture of experts against the formula of each expert by itself.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/block.h"
#include "model/ends.h"
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
};

Seen run(const ModelSpec& spec, Weights& w) {
  const auto source = random_source(spec, 5, "float64", "cpu");
  w = source->load("blocks.0");
  const Batch batch = make_batches(random_samples({9, 4}, 50), spec, 8).front();
  Seen seen;
  run_block(embed(batch, spec, source->load("embed"), *source), spec.blocks[0], w, batch, seen);
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
        const int64_t first = which[k].item<int64_t>() * 10;
        const auto rows = [&](const char* name) { return at::mv(w.get(name).narrow(0, first, 10), x); };
        const at::Tensor hidden =
            gated ? at::silu(rows("mlp.W_gate")) * rows("mlp.W_in") : at::silu(rows("mlp.W_in"));
        out = out + share[k] * at::mv(w.get("mlp.W_out").narrow(1, first, 10), hidden);
      }
      EXPECT_LT((out - seen.out[i]).abs().max().item<double>(), 1e-12 * (1 + out.abs().max().item<double>()));
    }
  }
}

TEST(Experts, OneOfOneIsAGatedMlp) {
  Weights w;
  const Seen seen = run(mixture(1, 1, true), w);
  const at::Tensor plain = at::linear(
      at::silu(at::linear(seen.read, w.get("mlp.W_gate"))) * at::linear(seen.read, w.get("mlp.W_in")),
      w.get("mlp.W_out"));
  EXPECT_LT((plain - seen.out).abs().max().item<double>(), 1e-13 * plain.abs().max().item<double>());
}

}  // namespace
}  // namespace rankscope
