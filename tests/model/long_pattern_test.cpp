// A block over a long text, seen in tiles and without them.
#include "model/long_pattern.h"

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

constexpr int64_t kTokens = kWholePattern + 88;

class Tiles : public BlockObserver {
 public:
  bool wants(std::string_view site) const override {
    return site == "attn.hook_pattern" || site == "attn.hook_attn_scores" || site == "attn.hook_sink";
  }
  void see(std::string_view site, const at::Tensor& x, const TilePlace&) override {
    if (site == "attn.hook_pattern") patterns.push_back(x.clone());
    if (site == "attn.hook_attn_scores") scores.push_back(x.clone());
    if (site == "attn.hook_sink") sink = x.clone();
  }
  std::vector<at::Tensor> patterns, scores;
  at::Tensor sink;
};

class Without : public Tiles, public LongPatternObserver {
 public:
  bool reads_long(std::string_view branch) const override { return branch == "attn"; }
  void see_long(std::string_view, const LongPattern& p, const TilePlace& place) override {
    ++seen;
    EXPECT_EQ(place.queries, kTokens);
    EXPECT_EQ(p.mass().sizes(), at::IntArrayRef({p.samples(), p.heads(), kTokens}));
    const at::Tensor all = at::arange(kTokens, at::kLong);
    whole = p.rows(0, 1, 0, p.heads(), all);
    whole_scores = p.scores(0, 1, 0, p.heads(), all);
    some = p.rows(0, 1, 1, 2, at::tensor(std::vector<int64_t>{599, 3}, at::kLong));
    received = p.received();
  }
  int seen = 0;
  at::Tensor whole, whole_scores, some, received;
};

at::Tensor run_with(const ModelSpec& spec, BlockObserver& observer, const std::string& dtype = "float32") {
  const auto source = random_source(spec, 11, dtype, "cpu");
  const Batch batch = make_batches(random_samples({kTokens}, 50), spec, 8).front();
  return run_block(embed(batch, spec, source->load("embed"), *source), spec.blocks[0],
                   source->load("blocks.0"), batch, observer);
}

std::vector<ModelSpec> kinds() {
  std::vector<ModelSpec> out;
  for (const NormPlace place : {NormPlace::pre, NormPlace::post})
    for (const bool more : {false, true}) {
      out.push_back(tiny_spec(place, 1));
      out.back().embedding.positions = 2000;
      AttentionSpec& a = out.back().blocks[0].attention();
      if (!more) continue;
      a.kv_heads = 2;
      a.window = 70;
      a.sinks = true;
      a.rotary_frequencies = {1.0, 0.1};
    }
  return out;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

// Scores of 6 products, of at most some hundred nats, exponentials, sums of 600: roundings of float32.
constexpr double kRounding = 600 * 0x1p-23;

TEST(LongPatterns, GiveTheSameBlockAndRowsAsTiles) {
  for (const ModelSpec& spec : kinds()) {
    Tiles tiles, exact;
    Without without;
    const at::Tensor y = run_with(spec, without), plain = run_with(spec, tiles),
                     right = run_with(spec, exact, "float64");
    EXPECT_EQ(without.seen, 1);
    EXPECT_TRUE(without.patterns.empty() && without.scores.empty());
    // Twice the error of the tiles in the same precision, or what is left where that happens to be none.
    EXPECT_LE(distance(y, right), 2 * distance(plain, right) + kRounding);
    const at::Tensor pattern = at::cat(tiles.patterns, 2), scores = at::cat(tiles.scores, 2);
    EXPECT_LE(distance(without.whole, pattern), kRounding);
    EXPECT_LE(distance(without.some[0][0][1], pattern[0][1][3]), kRounding);
    EXPECT_LE(distance(without.some[0][1][0], pattern[0][2][599]), kRounding);
    EXPECT_LE(distance(without.received, pattern.to(at::kDouble).sum(2)), 600 * kRounding);
    const at::Tensor hidden = scores == -INFINITY;
    EXPECT_TRUE(at::equal(without.whole_scores == -INFINITY, hidden));
    EXPECT_LE(distance(without.whole_scores.masked_fill(hidden, 0), scores.masked_fill(hidden, 0)),
              kRounding * scores.masked_fill(hidden, 0).abs().max().item<double>());
    EXPECT_EQ(without.sink.defined(), spec.blocks[0].attention().sinks);
    if (without.sink.defined()) {
      EXPECT_LE(distance(without.sink, tiles.sink), kRounding);
    }
  }
}

TEST(LongPatterns, LookingChangesNothing) {
  for (const ModelSpec& spec : kinds()) {
    Without without;
    BlockObserver nobody;
    EXPECT_TRUE(at::equal(run_with(spec, without), run_with(spec, nobody)));
  }
}

TEST(LongPatterns, OfOtherAttentionStayTiles) {
  for (const auto change :
       std::vector<void (*)(AttentionSpec&)>{[](AttentionSpec& a) { a.softcap = 20; },
                                             [](AttentionSpec& a) {
                                               a.alibi = {.1, .2, .3, .4};
                                             },
                                             [](AttentionSpec& a) { a.variant = "sink_column"; }}) {
    ModelSpec spec = kinds().front();
    change(spec.blocks[0].attention());
    Without without;
    run_with(spec, without);
    EXPECT_EQ(without.seen, 0);
    EXPECT_FALSE(without.patterns.empty());
  }
  Without in_double;
  run_with(kinds().front(), in_double, "float64");
  EXPECT_EQ(in_double.seen, 0);
}

}  // namespace
}  // namespace rankscope
