// Estimates by gradients, held to what they estimate where that is exact: for heads that write little.
#include "importance/estimates.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/rank_correlation.h"
#include "base/stats.h"
#include "importance/filing.h"
#include "importance/rank_curves.h"
#include "model/random_source.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::tiny_spec;

const ProgressCallback kQuiet;

// A network whose heads write a thousandth of what they would: terms beyond the leading one are as much
// smaller.
class Quiet : public WeightSource {
 public:
  Quiet(const ModelSpec& spec, double scale)
      : inner_(random_source(spec, 1, "float64", "cpu")), scale_(scale) {}
  const ModelSpec& spec() const override { return inner_->spec(); }
  Weights load(const std::string& part) override {
    Weights w = inner_->load(part);
    if (w.has("attn.W_O")) w.set("attn.W_O", w.get("attn.W_O") * scale_);
    return w;
  }
  at::Tensor rows(const std::string& p, const at::Tensor& i) override { return inner_->rows(p, i); }
  at::Tensor row_range(const std::string& p, int64_t first, int64_t count) override {
    return inner_->row_range(p, first, count);
  }

 private:
  std::unique_ptr<WeightSource> inner_;
  double scale_;
};

struct Small {
  ModelSpec spec;
  Quiet source;
  Questions questions;
  Evaluator evaluator;
  explicit Small(ModelSpec s, int64_t samples = 60, std::optional<int64_t> mask = {})
      : spec(std::move(s)),
        source(spec, 1e-3),
        questions(questions_for(
            spec, random_samples(std::vector<int64_t>(static_cast<size_t>(samples), 8), 50), mask, 1)),
        evaluator({.source = source,
                   .questions = questions,
                   .batch_size = 16,
                   .seed = 5,
                   .device = "cpu",
                   .parts = true,
                   .group_bytes = 0,
                   .progress = kQuiet}) {}
  std::vector<Judged> exact(const std::vector<Unit>& heads) {
    std::vector<Variation> v;
    for (const Unit& u : heads) v.push_back({u.layer, u, Replacement::zero, {}});
    return evaluator.run(v);
  }
};

ModelSpec softcapped() {
  ModelSpec s = tiny_spec(NormPlace::pre);
  s.output.softcap = 2.0;
  return s;
}

class Estimates : public testing::TestWithParam<ModelSpec (*)()> {};

// Beyond first order the loss has terms a thousandth as large, times what curvature makes of them: 2 %.
TEST_P(Estimates, TheLossIsThatOfTheGradient) {
  const ModelSpec spec = GetParam()();
  Small m(spec, 20, spec.causal() ? std::optional<int64_t>() : 49);
  const std::vector<Unit> heads = units_of(spec, UnitKind::head);
  const std::vector<Judged> judged = m.exact(heads);
  const HeadEstimates e = estimate_heads(m.evaluator);
  double largest = 0, worst = 0;
  for (size_t i = 0; i < heads.size(); ++i)
    for (size_t s = 0; s < judged[i].loss.size(); ++s) {
      const double exact = judged[i].loss[s] - m.evaluator.full().loss[s];
      const double estimate =
          e.loss[static_cast<size_t>(heads[i].layer)][static_cast<size_t>(heads[i].index)][s];
      largest = std::max(largest, std::fabs(exact));
      worst = std::max(worst, std::fabs(estimate - exact));
    }
  EXPECT_GT(largest, 1e-5);
  EXPECT_LT(worst, 0.02 * largest);
}

// Four draws for each of 60 samples and 12 heads. A square of a normal number has a relative deviation of
// sqrt 2; draws of different samples are independent, those of one sample serve all heads: at worst the sum
// has the deviation of 240 squares, sqrt(2 / 240) = 9 %, and four of these are 36 %.
TEST_P(Estimates, TheDivergenceIsHalfTheMeanSquareOfTheScores) {
  const ModelSpec spec = GetParam()();
  Small m(spec, 60, spec.causal() ? std::optional<int64_t>() : 49);
  const std::vector<Unit> heads = units_of(spec, UnitKind::head);
  const std::vector<Judged> judged = m.exact(heads);
  const HeadEstimates e = estimate_heads(m.evaluator);
  double exact = 0, estimate = 0;
  for (size_t i = 0; i < heads.size(); ++i) {
    exact += arithmetic_mean(judged[i].kl).value;
    estimate +=
        arithmetic_mean(e.kl[static_cast<size_t>(heads[i].layer)][static_cast<size_t>(heads[i].index)]).value;
  }
  EXPECT_GT(exact, 1e-10);
  EXPECT_NEAR(estimate / exact, 1, 0.36);
}

INSTANTIATE_TEST_SUITE_P(Heads, Estimates,
                         testing::Values(
                             +[] { return tiny_spec(NormPlace::pre); },
                             +[] { return tiny_spec(NormPlace::post); }, &softcapped));

TEST(Estimates, CostAtMostThreeAndNinePassesAndTheReadout) {
  Small m(tiny_spec(NormPlace::pre), 8);
  const double before = m.evaluator.passes();
  estimate_heads(m.evaluator);
  const double logits = 1200.0 / (3 * 4224);
  EXPECT_LE(m.evaluator.passes() - before, 12 + 2 * logits);
}

TEST(RankCurve, WordsAreReadAndOthersRefused) {
  EXPECT_EQ(parse_curve("qk=8,1,2,2").ranks, (std::vector<int64_t>{1, 2, 8}));
  EXPECT_EQ(parse_curve("kv=4").map, "kv");
  for (const char* words : {"qk=", "qk=1,", "qk=0,1", "uv=1,2", "qk=1;2", "qk=1,2+ov=1", ""})
    EXPECT_THROW(parse_curve(words), Error) << words;
}

TEST(Questions, SamplesThatAskForNothingGoWithTheirNumbers) {
  ModelSpec spec = tiny_spec(NormPlace::pre);
  for (BlockSpec& b : spec.blocks) b.attention().causal = true;
  std::vector<int64_t> numbers{3, 5, 8};
  Questions q = questions_for(spec, random_samples({4, 1, 2}, 50), {}, 1);
  ASSERT_EQ(q.kind, LossKind::next_token);
  const std::vector<int64_t> last = q.samples[2].ids;
  EXPECT_EQ(keep_asked(q, numbers), 1u);
  EXPECT_EQ(numbers, (std::vector<int64_t>{3, 8}));
  ASSERT_EQ(q.samples.size(), 2u);
  EXPECT_EQ(q.samples[1].ids, last);
  EXPECT_EQ(q.answers.ids[1], (std::vector<int64_t>{last[1]}));
  EXPECT_EQ(keep_asked(q, numbers), 0u);
  Questions nothing = questions_for(spec, random_samples({1, 1, 1}, 50), {}, 1);
  EXPECT_EQ(keep_asked(nothing, numbers = {0, 1, 2}), 0u);
  EXPECT_EQ(nothing.samples.size(), 3u);
}

// An output that hardly changes may be sure of another token than the text has.
TEST(RankCurve, ATextThatSurelyLosesMoreIsToldFromOneWhoseLossIsNotKnown) {
  Small m(tiny_spec(NormPlace::pre), 6);
  ResultTable table;
  const Filing filing(m.evaluator, {0, 1, 2, 3, 4, 5}, table);
  Judged j{m.evaluator.full().loss, std::vector<double>(6, 1e-9)};
  ASSERT_EQ(j.loss.size(), 6u);
  EXPECT_FALSE(filing.loses_text(j, 0.001));
  for (size_t s = 0; s < 6; ++s) j.loss[s] += 0.01 + (s % 2 == 0 ? 0.001 : -0.001);
  EXPECT_TRUE(filing.loses_text(j, 0.001));
  EXPECT_FALSE(filing.loses_text(j, 0.02));
  for (size_t s = 0; s < 6; ++s) j.loss[s] += s % 2 == 0 ? 0.1 : -0.1;
  EXPECT_FALSE(filing.loses_text(j, 0.001));
  j.loss.clear();
  EXPECT_FALSE(filing.loses_text(j, 0.001));
}

// A cut that changes nothing costs nothing, and one head's cost is what the whole layer's is where only that
// head is cut: the others of the layer here write nothing.
TEST(RankCurve, CostsNothingAtFullRankAndFallsToIt) {
  Small m(tiny_spec(NormPlace::pre), 6);
  ResultTable table;
  Filing filing(m.evaluator, {0, 1, 2, 3, 4, 5}, table);
  WriteGradients gradients;
  estimate_heads(m.evaluator, &gradients);
  for (const char* map : {"qk", "ov", "kv"}) {
    const std::string full = std::string(map) == "kv" ? "12" : "6";
    add_rank_curve(parse_curve(std::string(map) + "=1,3," + full), m.evaluator, &gradients, 1e-9, filing);
    const std::string stem = std::string("rank_") + map;
    std::map<int32_t, double> all, head;
    for (const Row& r : table.rows) {
      if (r.metric.str() == stem + "_kl" && r.layer < 0) all[r.depth] = r.value;
      if (r.metric.str() == stem + "_estimate_kl" && r.layer == 1 && r.head == 2) head[r.depth] = r.value;
    }
    const int32_t most = std::stoi(full);
    EXPECT_GT(all.at(1), 0);
    EXPECT_NEAR(all.at(most), 0, 1e-15);
    EXPECT_GT(head.at(1), 0);
    EXPECT_NEAR(head.at(most), 0, 1e-15);
    const Row* enough = table.find("full", stem + "_suffices", -1);
    ASSERT_NE(enough, nullptr);
    EXPECT_LE(enough->value, most);
  }
}

TEST(RankCorrelation, KnowsOrderReverseTiesAndNothing) {
  const std::vector<double> a{1, 2, 3, 4}, up{10, 20, 30, 400}, down{4, 3, 2, 1}, flat{1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(rank_correlation(a, up), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(a, down), -1);
  EXPECT_TRUE(std::isnan(rank_correlation(a, flat)));
  EXPECT_EQ(ranks_of(std::vector<double>{3, 1, 3, 0}), (std::vector<double>{2.5, 1, 2.5, 0}));
}

TEST(RankCurves, OfHeadsWiderThanTheStreamEndAtTheStreamsWidth) {
  ModelSpec wide = tiny_spec();
  for (BlockSpec& b : wide.blocks) b.attention().d_qk = b.attention().d_v = 128;
  const BlockSpec& block = wide.blocks.front();
  for (const char* map : {"qk", "ov", "kv"}) {
    EXPECT_EQ(full_rank(wide, block, map), wide.width) << map;
    EXPECT_EQ(cut_to(wide, block, map, wide.width).spec, block) << map;  // there is nothing to cut
    EXPECT_EQ(cut_to(wide, block, map, wide.width).kv_rank, 0) << map;
  }
  EXPECT_EQ(cut_to(wide, block, "qk", wide.width - 1).spec.attention().truncate_qk, wide.width - 1);
}

}  // namespace
}  // namespace rankscope
