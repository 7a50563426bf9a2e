// States of linear attention against their recurrences, token by token in double precision, and their ranks.
#include <gtest/gtest.h>

#include <cmath>

#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "model/states.h"
#include "support/lens_run.h"
#include "support/tiny.h"

namespace rankscope::testing {
namespace {

constexpr int64_t kStateWide = 6;  // of keys and values

// The first block of a small network on texts of 21, 21 and 5 tokens.
struct StateRun : BlockObserver {
  explicit StateRun(ModelSpec s, const std::vector<int64_t>& lengths = {21, 21, 5})
      : spec(std::move(s)), seeing(lens_named("states"), {spec, 0, 17, 3, 0.3}) {
    const auto source = random_source(spec, 5, "float64", "cpu");
    weights = source->load("blocks.0");
    batch = make_batches(test::random_samples(lengths, 50), spec, 8).front();
    packing = {batch.offsets, batch.samples, batch.content, batch.ids};
    run_block(embed(batch, spec, source->load("embed"), *source), spec.blocks[0], weights, batch, *this);
    got = seeing.finish();
  }
  bool wants(std::string_view site) const override { return site == "attn.hook_state"; }
  void see(std::string_view site, const at::Tensor& x, const TilePlace& place) override {
    if (site == "attn.hook_k") k = x.clone();
    if (site == "attn.hook_v") v = x.clone();
    if (site == "attn.hook_gate") gate = x.clone();
    if (site != "attn.hook_state") return;
    seeing.tile({x, place, spec.blocks[0].attention().causal, 0, packing});
    for (int64_t s = 0; s < x.size(0); ++s) states[place.first_sample + s] = x[s].clone();
  }
  ModelSpec spec;
  Weights weights;
  Batch batch;
  Packing packing;
  Seeing seeing;
  at::Tensor k, v, gate;
  std::map<int64_t, at::Tensor> states;  // by place in the batch: [H, count * d, e]
  Collected got;
};

ModelSpec state_network(const std::string& kind, int64_t kv_heads = 2) {
  ModelSpec spec = test::tiny_spec(NormPlace::pre, 1);
  spec.blocks[0].attention().variant = kind;
  spec.blocks[0].attention().kv_heads = kv_heads;
  if (kind == "delta") {
    spec.blocks[0].attention_branch()->part.name = "delta_attention";
    spec.blocks[0].attention_branch()->part.options = {{"forget", 1}};
  }
  return spec;
}

// S = a S + b k (v - c a S^T k)^T, c = 1 for the delta rule, of query head h of four over `tokens` tokens.
at::Tensor recurrence(const StateRun& run, int64_t place, int64_t h, int64_t tokens) {
  const std::string kind = run.spec.blocks[0].attention().variant;
  const int64_t KV = run.spec.blocks[0].attention().kv_heads, kv = h / (4 / KV);
  at::Tensor S = at::zeros({kStateWide, kStateWide}, at::kDouble);
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t at = run.packing.offsets[static_cast<size_t>(place)] + t;
    at::Tensor k = run.k[at][kv], v = run.v[at][kv];
    double keep = 1, write = 1;
    if (kind == "decay") keep = 1 - std::exp2(-(8.0 + static_cast<double>(h) / 3 * (5.0 - 8.0)));
    if (kind == "delta") {
      const at::Tensor gate = run.gate.view({run.gate.size(0), KV, 2})[at][kv];
      write = gate[0].item<double>(), keep = gate[1].item<double>();
      k = k / k.norm();
      v = v - keep * S.t().mv(k);
    }
    S = keep * S + write * at::outer(k, v);
  }
  return S;
}

double effective_rank_of_state(const at::Tensor& m) {
  const at::Tensor sigma = std::get<1>(at::linalg_svd(m)), p = sigma / sigma.sum();
  return std::exp(-(p * at::log(p.clamp_min(1e-300))).sum().item<double>());
}

// Sums of 21 products of numbers of the size of the state, in another order, and for the delta rule the
// inverse of a triangular matrix of that size.
constexpr double kStateRounding = 1e-11;

TEST(StatesLens, StatesAreThoseOfTheRecurrences) {
  for (const char* kind : {"linear", "decay", "delta"})
    for (const int64_t kv_heads : {1, 2, 4}) {
      const StateRun run(state_network(kind, kv_heads));
      ASSERT_EQ(run.states.size(), 3u);
      for (const int64_t at : {0, 1, 2}) {
        const int64_t length = run.packing.length(at), sample = run.packing.samples[static_cast<size_t>(at)];
        const std::vector<int64_t> after = state_tokens(true, length);
        ASSERT_EQ(after,
                  length == 21 ? (std::vector<int64_t>{2, 4, 8, 16, 21}) : (std::vector<int64_t>{2, 4, 5}));
        for (int h = 0; h < 4; ++h)
          for (size_t i = 0; i < after.size(); ++i) {
            const at::Tensor want = recurrence(run, at, h, after[i]),
                             found = run.states.at(at)[h].narrow(0, static_cast<int64_t>(i) * kStateWide,
                                                                 kStateWide);
            EXPECT_LE((found - want).abs().max().item<double>(),
                      kStateRounding * want.abs().max().item<double>())
                << kind << " after " << after[i];
            const std::string metric =
                i + 1 == after.size() ? "state_rank" : "state_rank_at_" + std::to_string(after[i]);
            // An effective rank of values that are off by e of the largest is off by about e log(1 / e).
            EXPECT_NEAR(run.got.of(metric, sample, h), effective_rank_of_state(want), 1e-8) << kind << metric;
          }
        EXPECT_EQ(run.got.of("state_width", sample, 0), kStateWide);
      }
    }
}

TEST(StatesLens, TheRankIsAtMostThePairsStoredAndTheWidth) {
  ModelSpec turned = state_network("linear");
  turned.blocks[0].attention().rotary_frequencies = {1.0, 0.1};
  for (const ModelSpec& spec :
       {state_network("linear"), state_network("decay"), state_network("delta"), turned}) {
    const StateRun run(spec);
    for (int h = 0; h < 4; ++h) {
      EXPECT_LE(run.got.of("state_rank_at_2", 0, h), 2);
      EXPECT_GT(run.got.of("state_rank_at_2", 0, h), 1);  // of two random pairs
      EXPECT_LE(run.got.of("state_rank_at_4", 0, h), 4);
      EXPECT_GT(run.got.of("state_rank_at_4", 0, h), run.got.of("state_rank_at_2", 0, h));
      EXPECT_LE(run.got.of("state_rank", 0, h), kStateWide);
    }
  }
}

TEST(StatesLens, ATextAsLongAsADoublingIsBothAndOneTokenHasNone) {
  const StateRun run(state_network("linear"), {8, 1});
  EXPECT_EQ(run.got.of("state_rank_at_8", 0, 0), run.got.of("state_rank", 0, 0));
  EXPECT_FALSE(run.got.has("state_rank_at_2", 1, 0));
  EXPECT_NEAR(run.got.of("state_rank", 1, 0), 1.0, 1e-8);
}

TEST(StatesLens, WithoutAMaskThereIsOneStateThatAllTokensWrote) {
  ModelSpec spec = state_network("linear");
  spec.blocks[0].attention().causal = false;
  const StateRun run(spec);
  const int64_t at = run.packing.length(0) == 21 ? 0 : 1;
  const at::Tensor want = recurrence(run, at, 3, 21);
  EXPECT_LE((run.states.at(at)[3] - want).abs().max().item<double>(),
            kStateRounding * want.abs().max().item<double>());
  EXPECT_FALSE(run.got.has("state_rank_at_2", 0, 0));
}

TEST(StatesLens, WhatKeepsNoStateShowsNone) {
  EXPECT_TRUE(StateRun(state_network("softmax")).states.empty());
  ModelSpec window = state_network("linear");
  window.blocks[0].attention().window = 4;
  EXPECT_TRUE(StateRun(window).states.empty());
}

}  // namespace
}  // namespace rankscope::testing
