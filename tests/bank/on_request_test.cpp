// What the verdict measures on request, on networks that are known well enough to compute it by hand.
#include <gtest/gtest.h>

#include "bank/bank.h"
#include "scan/lengths.h"

namespace rankscope::bank {
namespace {

Planted both_ways(bool causal, int64_t samples, int64_t length) {
  for (uint64_t i = 0;; ++i) {
    Draw draw(21, i);
    Planted p = healthy("on request", draw, samples, length);
    if (p.spec.pre_norm() && p.spec.final_norm.kind == NormKind::rms && p.spec.causal() == causal) return p;
  }
}

const Row* find(const ResultTable& table, const std::string& metric, int layer, int head = -1) {
  for (const Row& r : table.rows)
    if (r.variant == "full" && r.metric.str() == metric && r.layer == layer && r.head == head) return &r;
  return nullptr;
}

/// Mean over rows of KL(p || q), from logits.
double kl(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor p = a.log_softmax(-1), q = b.log_softmax(-1);
  return (p.exp() * (p - q)).sum(-1).mean().item<double>();
}

// Blocks that write nothing: the output is W_U N(x), x the words, and every layer's tokens are the words.
TEST(OnRequest, UseIsWhatTheMeanTokenCostsBesideTheMeanOutput) {
  for (const bool causal : {false, true}) {
    Planted p = both_ways(causal, 3, 40);
    Stored& w = *p.weights;
    silence(p);
    p.use = true;
    const Said said = ask(p);
    const auto logits = [&](const at::Tensor& x) {
      const at::Tensor t = x.to(at::kDouble);
      return (t / (t.square().mean(1, true) + 1e-6).sqrt()).matmul(w["unembed.W_U"].to(at::kDouble).t());
    };
    std::vector<at::Tensor> full, replaced;
    for (const Sample& s : p.samples) {
      const at::Tensor x = w["embed.W_E"].index_select(0, at::tensor(s.ids)).to(at::kDouble);
      full.push_back(logits(x));
      at::Tensor y = x.mean(0, true).expand_as(x).clone();
      if (causal) {  // position 0 is no content there
        const at::Tensor rest = x.narrow(0, 1, 39), seen = at::arange(1, 40, at::kDouble).unsqueeze(1);
        y = at::cat({x.narrow(0, 0, 1), rest.cumsum(0) / seen});
      }
      replaced.push_back(logits(y));
    }
    const at::Tensor all = at::cat(full), mean = all.softmax(-1).mean(0, true).log().expand_as(all);
    const double expected = kl(all, at::cat(replaced)) / kl(all, mean);
    for (int l = 0; l < 2; ++l) {
      const Row* use = find(said.table, "use", l);
      ASSERT_NE(use, nullptr);
      EXPECT_NEAR(use->value, expected, 1e-4 * expected) << l;  // logits in float32 against double
      EXPECT_EQ(use->n, 3);
      EXPECT_GT(use->stderr_, 0);
    }
  }
}

// Blocks that write nothing: the output is W_U N(x), its metric J^T (diag p - p p^T) J with J = W_U N'(x).
TEST(OnRequest, SpreadByTheOutputsFisherMetricIsTheRatioOfTwoTraces) {
  for (const bool causal : {false, true}) {
    Planted p = both_ways(causal, 16, 32);
    Stored& w = *p.weights;
    silence(p);
    // Samples differ along a direction that is read much, words along all.
    Draw draw(22, causal);
    sign_samples(p, draw, 2, marker(3));
    w["unembed.W_U"] += 0.3 * at::outer(draw.normal({kWords}), marker(3));
    p.fisher = true;
    const Said said = ask(p);
    const at::Tensor U = w["unembed.W_U"].to(at::kDouble);
    at::Tensor G = at::zeros({kWidth, kWidth}, at::kDouble);
    std::vector<at::Tensor> samples;
    for (const Sample& s : p.samples) {
      at::Tensor x = w["embed.W_E"].index_select(0, at::tensor(s.ids)).to(at::kDouble);
      if (causal) x = x.narrow(0, 1, x.size(0) - 1);  // position 0 is no content there
      for (int64_t i = 0; i < x.size(0); ++i) {
        const at::Tensor rms = (x[i].square().mean() + 1e-6).sqrt(), n = x[i] / rms;
        const at::Tensor J = U.matmul(at::eye(kWidth, at::kDouble) - at::outer(n, n) / kWidth) / rms;
        const at::Tensor q = at::mv(U, n).softmax(0);
        G += J.t().matmul(at::diag(q) - at::outer(q, q)).matmul(J);
      }
      samples.push_back(x);
    }
    const auto size = [&](const at::Tensor& x) { return (x.matmul(G) * x).sum().item<double>(); };
    const at::Tensor all = at::cat(samples);
    double within = 0;
    for (const at::Tensor& x : samples) {
      const at::Tensor seen = at::arange(1, x.size(0) + 1, at::kDouble).unsqueeze(1);
      within += size(x - (causal ? x.cumsum(0) / seen : x.mean(0, true)));
    }
    const double expected = within / size(all - all.mean(0));
    EXPECT_GT(expected, 0.1);
    EXPECT_LT(expected, 0.9);
    for (int l = 0; l < 2; ++l) {
      const Row* spread = find(said.table, "spread_fisher", l);
      ASSERT_NE(spread, nullptr);
      // 8 draws of 500 tokens: the weight of one direction beside all others is known to a few times
      // 1 / sqrt(4000).
      EXPECT_NEAR(spread->value, expected, 0.05 * expected) << l;
      EXPECT_EQ(spread->n, 16);
      EXPECT_GT(spread->stderr_, 0);
    }
    // Once forward, once more in steps, eight times back at twice the cost, and the logits.
    const Row* passes = find(said.table, "fisher_passes", -1);
    ASSERT_NE(passes, nullptr);
    EXPECT_GT(passes->value, 18);
    EXPECT_LT(passes->value, 19);
  }
}

TEST(OnRequest, SpreadByTheOutputsFisherMetricStaysWhenTheNetworkIsWrittenDownInAnotherWay) {
  for (uint64_t i = 0; i < 6; ++i) {
    Draw draw(23, i, i);
    Planted p = used(draw, 8, 48);
    const Said before = ask(p);
    Draw other(24, i);
    reparametrise(p, other);
    const Said after = ask(p);
    for (int l = 0; l < 2; ++l) {
      const Row *a = find(before.table, "spread_fisher", l), *b = find(after.table, "spread_fisher", l);
      ASSERT_TRUE(a != nullptr && b != nullptr);
      // Outputs agree to 1e-3 (bank_test.cpp); draws are by the same numbers, so hardly a word changes.
      EXPECT_NEAR(a->value, b->value, 0.01 * a->value) << i << " layer " << l;
    }
  }
}

// Every query gives its key the same logit above the others, so the margin is the same at any length: slope
// 0.
TEST(OnRequest, ASinkOfOneMarginHasNoSlopeOverHalvedTextsAndItsEmptyValueDrainsAll) {
  Planted p = both_ways(false, 4, 128);
  Stored& w = *p.weights;
  mark_position(p, 0, 0);
  w["embed.W_E"][kMarkedWord].zero_();  // the first token is its mark and nothing else
  for (Sample& s : p.samples) s.ids[0] = kMarkedWord;
  look_at_mark(p, 0, 0, 6);
  at::Tensor W_V = w["blocks.0.attn.W_V"].narrow(0, 0, kHeadWidth);
  W_V -= at::outer(at::mv(W_V, marker(0)), marker(0));
  Said said = ask(p);
  const std::vector<Batch> batches = make_batches(p.samples, p.spec, 8);
  std::vector<std::string> notes;
  const Thresholds limits;
  const std::vector<bool> layers(2, true);
  measure_lengths({w, p.samples, batches, layers, limits, {}}, p.samples, {}, said.table, notes);
  const Row *slope = find(said.table, "sink_slope_lengths", 0, 0),
            *drained = find(said.table, "sink_drained", 0, 0);
  ASSERT_NE(slope, nullptr);
  ASSERT_NE(drained, nullptr);
  EXPECT_NEAR(slope->value, 0, 1e-4);  // margins to float32, over two halvings
  EXPECT_NEAR(drained->value, 0, 1e-5);
  EXPECT_EQ(find(said.table, "sink_drained", 0, 1), nullptr);  // no sink
}

TEST(OnRequest, TextsThatAreTooShortAreNotHalvedAndANoteSaysSo) {
  Planted p = both_ways(false, 4, 40);
  Said said = ask(p);
  const std::vector<Batch> batches = make_batches(p.samples, p.spec, 8);
  std::vector<std::string> notes;
  const Thresholds limits;
  const std::vector<bool> layers(2, true);
  measure_lengths({*p.weights, p.samples, batches, layers, limits, {}}, p.samples, {}, said.table, notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes.front().find("fewer than 32 tokens"), std::string::npos) << notes.front();
}

}  // namespace
}  // namespace rankscope::bank
