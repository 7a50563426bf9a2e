// How open gates are, against counting them one by one.
#include <gtest/gtest.h>

#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "support/lens_run.h"
#include "support/tiny.h"

namespace rankscope::testing {
namespace {

// The gates of the first block of a small network on two texts, and what the lens says of them.
struct GatedRun : BlockObserver {
  explicit GatedRun(ModelSpec s) : spec(std::move(s)) {
    const auto source = random_source(spec, 5, "float64", "cpu");
    const Weights weights = source->load("blocks.0");
    const Batch batch = make_batches(test::random_samples({9, 14}, 50), spec, 8).front();
    run_block(embed(batch, spec, source->load("embed"), *source), spec.blocks[0], weights, batch, *this);
    const Packed packed({batch.length(0), batch.length(1)});
    const Packing packing = packed.packing();
    first = batch.length(0);
    Seeing seeing(lens_named("gates"), {spec, 0, 17, 2, 0.3});
    seeing.whole({gate, packing});
    got = seeing.finish();
  }
  void see(std::string_view site, const at::Tensor& x, const TilePlace&) override {
    if (site == "attn.hook_gate") gate = x.clone();
  }
  ModelSpec spec;
  at::Tensor gate;
  int64_t first = 0;  // tokens of sample 0
  Collected got;
};

ModelSpec gated_network(const std::map<std::string, double>& options) {
  ModelSpec spec = test::tiny_spec(NormPlace::pre, 1);
  spec.blocks[0].attention_branch()->part.name = "gated_attention";
  for (const auto& [name, value] : options)  // defaults are left out
    if (value != (name == "place" ? 1 : 0)) spec.blocks[0].attention_branch()->part.options[name] = value;
  return spec;
}

const char* const kGateShareNames[] = {"gate_share_00", "gate_share_10", "gate_share_20", "gate_share_30",
                                       "gate_share_40", "gate_share_50", "gate_share_60", "gate_share_70",
                                       "gate_share_80", "gate_share_90"};

// Means of at most a few hundred numbers of at most a few: sums in another order.
constexpr double kGateRounding = 1e-13;

void expect_counted(const Collected& got, int64_t sample, int head, const at::Tensor& values) {
  const at::Tensor flat = values.contiguous().view({-1});
  std::vector<double> counts(10);
  double sum = 0;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double g = flat[i].item<double>();
    sum += g;
    int bin = 0;
    while (bin < 9 && g >= (bin + 1) / 10.0) ++bin;
    counts[static_cast<size_t>(bin)] += 1;
  }
  const auto n = static_cast<double>(flat.numel());
  EXPECT_NEAR(got.of("gate_mean", sample, head), sum / n, kGateRounding);
  for (size_t b = 0; b < 10; ++b)
    EXPECT_NEAR(got.of(kGateShareNames[b], sample, head), counts[b] / n, kGateRounding);
}

TEST(GatesLens, CountsTheValuesOfEveryHead) {
  for (const double place : {1, 2, 3, 4})
    for (const double by_head : {0, 1})
      for (const double silu : {0, 1}) {
        const GatedRun run(gated_network({{"place", place}, {"by_head", by_head}, {"silu", silu}}));
        ASSERT_EQ(run.gate.size(1), 4);
        ASSERT_EQ(run.gate.size(2), by_head ? 1 : 6);
        const at::Tensor second = run.gate.narrow(0, run.first, run.gate.size(0) - run.first);
        for (int h = 0; h < 4; ++h) {
          expect_counted(run.got, 0, h, run.gate.narrow(0, 0, run.first).select(1, h));
          expect_counted(run.got, 1, h, second.select(1, h));
        }
        expect_counted(run.got, 1, -1, second);
        EXPECT_FALSE(run.got.has("state_kept", 0, 0));
      }
}

TEST(GatesLens, AGateOnWhatTheOutputMapWroteHasNoHeads) {
  const GatedRun run(gated_network({{"place", 5}}));
  expect_counted(run.got, 0, -1, run.gate.narrow(0, 0, run.first));
  EXPECT_FALSE(run.got.has("gate_mean", 0, 0));
}

TEST(GatesLens, OfADeltaRuleItTellsWhatIsWrittenFromWhatIsKept) {
  for (const double forget : {0, 1}) {
    ModelSpec spec = test::tiny_spec(NormPlace::pre, 1);
    spec.blocks[0].attention().variant = "delta";
    spec.blocks[0].attention().kv_heads = 2;
    spec.blocks[0].attention_branch()->part.name = "delta_attention";
    if (forget != 0) spec.blocks[0].attention_branch()->part.options = {{"forget", forget}};
    const GatedRun run(spec);
    const at::Tensor both = run.gate.view({run.gate.size(0), 2, -1}).narrow(0, 0, run.first);
    for (int h = 0; h < 2; ++h) {
      expect_counted(run.got, 0, h, both.select(1, h).select(1, 0));
      ASSERT_EQ(run.got.has("state_kept", 0, h), forget != 0);
      if (forget != 0) {
        EXPECT_NEAR(run.got.of("state_kept", 0, h), both.select(1, h).select(1, 1).mean().item<double>(),
                    kGateRounding);
      }
    }
  }
}

// gated_delta_attention shows them by the heads of its values, of which a KV head has several.
TEST(GatesLens, GatesThatComeByHeadAreThoseOfTheirHeads) {
  at::manual_seed(3);
  ModelSpec spec = test::tiny_spec(NormPlace::pre, 1);
  spec.blocks[0].attention().variant = "delta";
  spec.blocks[0].attention().kv_heads = 2;
  const Packed packed({7});
  const Packing packing = packed.packing();
  const at::Tensor gate = at::rand({7, 4, 2}, at::kDouble);
  Seeing seeing(lens_named("gates"), {spec, 0, 17, 1, 0.3});
  seeing.whole({gate, packing});
  const Collected got = seeing.finish();
  for (int h = 0; h < 4; ++h) {
    expect_counted(got, 0, h, gate.select(1, h).select(1, 0));
    EXPECT_NEAR(got.of("state_kept", 0, h), gate.select(1, h).select(1, 1).mean().item<double>(),
                kGateRounding);
  }
}

TEST(GatesLens, ShutAndOpenGatesAreInTheFirstAndTheLastBin) {
  const Packed packed({3});
  const Packing packing = packed.packing();
  const at::Tensor gate = at::tensor({0.0, 1.0, -0.2, 3.0, 0.09, 0.9}, at::kDouble)
                              .view({3, 1, 2})
                              .expand({3, 2, 2})
                              .contiguous();
  Seeing seeing(lens_named("gates"));
  seeing.whole({gate, packing});
  const Collected got = seeing.finish();
  EXPECT_EQ(got.of("gate_share_00", 0, 1), 0.5);
  EXPECT_EQ(got.of("gate_share_90", 0, 1), 0.5);
  EXPECT_EQ(got.of("gate_share_00"), 0.5);
}

}  // namespace
}  // namespace rankscope::testing
