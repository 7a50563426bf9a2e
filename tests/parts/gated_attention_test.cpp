// The output gate against its formula, and at its two ends.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::tiny_spec;

struct Gated {
  Gated() {
    for (BlockSpec& block : spec.blocks) block.attention_branch()->part.name = "gated_attention";
    source = random_source(spec, 5, "float64", "cpu");
    weights = source->load("blocks.0");
    batch = make_batches(random_samples({9}, 50), spec, 8).front();
    x = embed(batch, spec, source->load("embed"), *source);
  }
  at::Tensor attention(const std::string& part, const Weights& w) const {
    BlockSpec block = spec.blocks[0];
    block.branches.resize(1);
    block.branches[0].part.name = part;
    block.branches[0].skip = false;
    block.branches[0].before = {};
    BlockObserver nobody;
    return run_block(x, block, w, batch, nobody);
  }
  ModelSpec spec = tiny_spec(NormPlace::pre, 1);
  std::unique_ptr<WeightSource> source;
  Weights weights;
  Batch batch;
  at::Tensor x;
};

// Sums of 24 terms in double precision.
constexpr double kRounding = 1e-13;

class Kept : public BlockObserver {
 public:
  void see(std::string_view site, const at::Tensor& t, const TilePlace&) override {
    if (site == "attn.hook_z") z = t.clone().flatten(1);
    if (site == "attn.hook_gate") gate = t.clone().flatten(1);
    if (site == "hook_attn_out") out = t.clone();
    if (site == "ln1.hook_normalized") read = t.clone();
  }
  at::Tensor z, gate, out, read;
};

// hook_z is what the output map reads: of plain attention the heads' values, of the gated one their product
// with the gate.
TEST(GatedAttention, MultipliesTheHeadsByTheirGate) {
  Kept gated, plain;
  const Gated m;
  run_block(m.x, m.spec.blocks[0], m.weights, m.batch, gated);
  BlockSpec open = m.spec.blocks[0];
  open.attention_branch()->part.name = "attention";
  run_block(m.x, open, m.weights, m.batch, plain);
  const at::Tensor gate =
      at::sigmoid(at::linear(gated.read, m.weights.get("attn.W_G"), m.weights.get("attn.b_G")));
  EXPECT_LT((gated.gate - gate).abs().max().item<double>(), kRounding);
  EXPECT_LT((gated.z - plain.z * gate).abs().max().item<double>(), kRounding);
  const at::Tensor out = at::linear(gated.z, m.weights.get("attn.W_O"), m.weights.get("attn.b_O"));
  EXPECT_LT((gated.out - out).abs().max().item<double>(), kRounding * out.abs().max().item<double>());
}

// One gate for all heads, a number a channel or a number in all; added instead of multiplied.
TEST(GatedAttention, MayBeSharedAndMayBeAdded) {
  for (const bool by_head : {false, true})
    for (const bool shared : {false, true})
      for (const bool additive : {false, true}) {
        Gated m;
        const auto option = [&](const char* name, bool on) {
          if (on) m.spec.blocks[0].attention_branch()->part.options[name] = 1;
        };
        option("by_head", by_head), option("shared", shared), option("additive", additive);
        m.source = random_source(m.spec, 5, "float64", "cpu");
        m.weights = m.source->load("blocks.0");
        Kept gated, plain;
        run_block(m.x, m.spec.blocks[0], m.weights, m.batch, gated);
        BlockSpec open = m.spec.blocks[0];
        open.attention_branch()->part = {"attention", open.attention(), {}};
        run_block(m.x, open, m.weights, m.batch, plain);
        const at::Tensor gate =
            at::sigmoid(at::linear(gated.read, m.weights.get("attn.W_G"), m.weights.get("attn.b_G")));
        ASSERT_EQ(gate.size(1), (by_head ? 1 : 6) * (shared ? 1 : 4));  // four heads of width 6
        for (int64_t h = 0; h < 4; ++h)
          for (int64_t c = 0; c < 6; ++c) {
            const at::Tensor own = gate.select(1, (shared ? 0 : h) * (by_head ? 1 : 6) + (by_head ? 0 : c)),
                             z = plain.z.select(1, 6 * h + c);
            EXPECT_LT(
                (gated.z.select(1, 6 * h + c) - (additive ? z + own : z * own)).abs().max().item<double>(),
                kRounding);
          }
      }
}

TEST(GatedAttention, AGateThatIsOpenIsPlainAttentionAndAShutOneWritesTheBias) {
  Gated m;
  const at::Tensor plain = m.attention("attention", m.weights);
  m.weights.set("attn.W_G", at::zeros_like(m.weights.get("attn.W_G")));
  m.weights.set("attn.b_G", at::full_like(m.weights.get("attn.b_G"), 50.0));  // 1 - sigmoid(50) is 2e-22
  EXPECT_TRUE(at::equal(m.attention("gated_attention", m.weights), plain));
  m.weights.set("attn.b_G", at::full_like(m.weights.get("attn.b_G"), -800.0));  // exp(-800) is no double
  EXPECT_TRUE(at::equal(m.attention("gated_attention", m.weights),
                        m.weights.get("attn.b_O").expand_as(plain).contiguous()));
}

}  // namespace
}  // namespace rankscope
