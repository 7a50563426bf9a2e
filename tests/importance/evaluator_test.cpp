// Parts taken out one by one, each held to the plain way of doing it: another spec, run whole.
#include "importance/evaluator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/stats.h"
#include "checkpoint/checkpoint.h"
#include "importance/savings.h"
#include "importance/stand_ins.h"
#include "model/head_means.h"
#include "model/kv_latent.h"
#include "model/random_source.h"
#include "pass/output.h"
#include "pass/readout.h"
#include "spec/edit.h"
#include "support/source_tree.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::tiny_spec;

const ProgressCallback kQuiet;

std::vector<Variation> alone(const std::vector<Unit>& units, Replacement replacement = Replacement::zero) {
  std::vector<Variation> out;
  for (const Unit& u : units) out.push_back({u.layer, u, replacement, {}});
  return out;
}

struct Bench {
  ModelSpec spec;
  std::unique_ptr<WeightSource> source;
  std::vector<Sample> samples = random_samples({9, 5, 9, 12}, 50);
  Questions questions;
  std::unique_ptr<Evaluator> evaluator;

  explicit Bench(ModelSpec s, int64_t group_bytes = 0, std::optional<int64_t> mask = {},
                 int64_t batch_size = 2)
      : spec(std::move(s)) {
    source = random_source(spec, 1, "float64", "cpu");
    questions = questions_for(spec, samples, mask, 3);
    evaluator = std::make_unique<Evaluator>(Evaluator::Job{.source = *source,
                                                           .questions = questions,
                                                           .batch_size = batch_size,
                                                           .seed = 0,
                                                           .device = "cpu",
                                                           .parts = true,
                                                           .group_bytes = group_bytes,
                                                           .progress = kQuiet,
                                                           .numbers = {}});
  }

  // The reference: variants of a pass, whole networks each.
  struct Reference {
    double kl, loss;
  };
  Reference reference(const ModelSpec& other) {
    PassPlan plan;
    plan.variants = {{"full", spec, 0, 0}, {"other", other, 0, 0}};
    plan.sources = {source.get()};
    plan.inputs = {make_batches(questions.samples, spec, 8)};
    plan.layers.assign(static_cast<size_t>(spec.depth()), true);
    ResultTable table;
    std::vector<std::string> notes;
    const std::vector<FinalState> states = run_pass(plan, table, notes, {});
    compare_outputs(states[0], plan, {&states[1]}, plan, table, notes);
    add_losses(states, plan, {questions}, table);
    const Row *kl = table.find("other", "output_kl", -1), *loss = table.find("other", "nll", -1),
              *full = table.find("full", "nll", -1);
    return {kl->value, loss != nullptr ? loss->value - full->value : kNone};
  }

  double loss_gained(const Judged& j) const {
    std::vector<double> gained;
    for (size_t s = 0; s < j.loss.size(); ++s) gained.push_back(j.loss[s] - evaluator->full().loss[s]);
    return mean_over_tokens(gained, evaluator->asked()).value;
  }
};

ModelSpec parallel_spec() {
  ModelSpec s = tiny_spec(NormPlace::pre);
  for (BlockSpec& b : s.blocks) b.parallel = true;
  return s;
}

ModelSpec gated_spec() {
  ModelSpec s = tiny_spec(NormPlace::pre);
  for (BlockSpec& b : s.blocks) b.attention_branch()->part.name = "gated_attention";
  return s;
}

ModelSpec normed_inside_spec() {
  ModelSpec s = tiny_spec(NormPlace::pre);
  for (BlockSpec& b : s.blocks)
    for (BranchSpec& branch : b.branches) branch.inside = {NormKind::rms, 1e-6};
  return s;
}

// float64; outputs of order one through three blocks: differences of the order of rounding stay below 1e-11.
constexpr double kRounding = 1e-11;

class EveryHead : public testing::TestWithParam<ModelSpec (*)()> {};

TEST_P(EveryHead, OutCostsWhatTheWholeNetworkWithoutItCosts) {
  Bench b(GetParam()());
  const std::vector<Unit> heads = units_of(b.spec, UnitKind::head);
  ASSERT_EQ(heads.size(), 12u);
  const std::vector<Judged> judged = b.evaluator->run(alone(heads));
  for (size_t i = 0; i < heads.size(); ++i) {
    const Bench::Reference want = b.reference(without(b.spec, "head:" + heads[i].label()));
    EXPECT_NEAR(arithmetic_mean(judged[i].kl).value, want.kl, kRounding) << heads[i].label();
    EXPECT_GT(want.kl, 1e-6);
    if (!judged[i].loss.empty()) {
      EXPECT_NEAR(b.loss_gained(judged[i]), want.loss, kRounding) << heads[i].label();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Evaluator, EveryHead,
                         testing::Values(
                             +[] { return tiny_spec(NormPlace::pre); },
                             +[] { return tiny_spec(NormPlace::post); }, &parallel_spec, &gated_spec,
                             &normed_inside_spec));

TEST(Evaluator, GroupsOfOneGiveWhatOneGroupGives) {
  Bench all(tiny_spec(NormPlace::pre)), few(tiny_spec(NormPlace::pre), 1);
  const std::vector<Variation> variations = alone(units_of(all.spec, UnitKind::head));
  const std::vector<Judged> a = all.evaluator->run(variations), b = few.evaluator->run(variations);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].kl, b[i].kl);
    EXPECT_EQ(a[i].loss, b[i].loss);
  }
  EXPECT_DOUBLE_EQ(all.evaluator->passes(), few.evaluator->passes());
}

TEST(Evaluator, AnMlpOutIsTheBranchWithoutIt) {
  Bench b(tiny_spec(NormPlace::pre));
  const std::vector<Unit> units = units_of(b.spec, UnitKind::mlp);
  const std::vector<Judged> judged = b.evaluator->run(alone(units));
  for (size_t i = 0; i < units.size(); ++i) {
    ModelSpec other = b.spec;
    other.blocks[i].branches.pop_back();
    EXPECT_NEAR(arithmetic_mean(judged[i].kl).value, b.reference(other).kl, kRounding);
  }
}

TEST(Evaluator, MeansAreOverAllSamplesWhateverTheBatches) {
  const ModelSpec spec = tiny_spec(NormPlace::pre);
  const std::vector<Unit> units{{UnitKind::mlp, 0, -1}, {UnitKind::mlp, 1, -1}, {UnitKind::head, 0, 1}};
  Bench one(spec, 0, {}, 1), all(spec, 0, {}, 4);
  const std::vector<Judged> a = one.evaluator->run(alone(units, Replacement::mean)),
                            b = all.evaluator->run(alone(units, Replacement::mean));
  for (size_t i = 0; i < units.size(); ++i)
    EXPECT_NEAR(arithmetic_mean(a[i].kl).value, arithmetic_mean(b[i].kl).value, kRounding) << i;
}

TEST(Evaluator, ALayerOutIsTheNetworkWithoutItsBranches) {
  Bench b(tiny_spec(NormPlace::pre));
  const std::vector<Judged> judged = b.evaluator->run(alone(units_of(b.spec, UnitKind::layer)));
  for (size_t i = 0; i < judged.size(); ++i) {
    ModelSpec other = b.spec;
    other.blocks[i].branches.back().scale = other.blocks[i].branches.front().scale = 0;
    EXPECT_NEAR(arithmetic_mean(judged[i].kl).value, b.reference(other).kl, kRounding);
  }
}

TEST(Evaluator, EditsOfSeveralLayersAreThoseOfTheSpec) {
  Bench b(tiny_spec(NormPlace::pre));
  const ModelSpec cut = with_rank(without(b.spec, "head:L0H1+head:L2H3"), "qk=2+ov=3");
  Variation v;
  for (int64_t l = 0; l < 3; ++l) v.edits[l] = {cut.blocks[static_cast<size_t>(l)], 0};
  const Judged judged = b.evaluator->run({v}).front();
  EXPECT_NEAR(arithmetic_mean(judged.kl).value, b.reference(cut).kl, kRounding);
  EXPECT_NEAR(b.loss_gained(judged), b.reference(cut).loss, kRounding);
}

TEST(Evaluator, WhatEqualTokensCarryIsItsOwnMeanAndResample) {
  ModelSpec spec = tiny_spec(NormPlace::pre);
  spec.embedding.positions = 0;
  spec.position = PositionKind::none;
  Bench b(spec);
  for (Sample& s : b.samples) std::fill(s.ids.begin(), s.ids.end(), 7);
  b.questions = questions_for(spec, b.samples, {}, 0);
  Evaluator same({.source = *b.source,
                  .questions = b.questions,
                  .batch_size = 8,
                  .seed = 0,
                  .device = "cpu",
                  .parts = true,
                  .group_bytes = 0,
                  .progress = kQuiet});
  for (const Replacement r : {Replacement::mean, Replacement::resample})
    for (const UnitKind kind : {UnitKind::head, UnitKind::mlp})
      for (const Judged& j : same.run(alone(units_of(spec, kind), r)))
        for (const double kl : j.kl) EXPECT_NEAR(kl, 0, kRounding);
  const Judged zero = same.run(alone({{UnitKind::head, 0, 0}})).front();
  EXPECT_GT(zero.kl.front(), 1e-6);
}

// An option at its part's default is left out of a spec: four experts are as many as any other number.
// Weights of which one part is far too large.
class Overflowing : public WeightSource {
 public:
  Overflowing(WeightSource& source, std::string part, std::string name)
      : source_(source), part_(std::move(part)), name_(std::move(name)) {}
  const ModelSpec& spec() const override { return source_.spec(); }
  Weights load(const std::string& part) override {
    Weights w = source_.load(part);
    if (part == part_ && w.has(name_)) w.set(name_, w.get(name_) * 1e300);
    return w;
  }
  at::Tensor rows(const std::string& parameter, const at::Tensor& indices) override {
    return source_.rows(parameter, indices);
  }
  at::Tensor row_range(const std::string& parameter, int64_t first, int64_t count) override {
    const at::Tensor rows = source_.row_range(parameter, first, count);
    return parameter == part_ + "." + name_ ? rows * 1e300 * 1e300 : rows;
  }

 private:
  WeightSource& source_;
  const std::string part_, name_;
};

/// What the evaluator says of a network with such a part, and where.
std::pair<std::string, std::string> refused(const char* part, const char* name) {
  const Bench bench(tiny_spec(NormPlace::pre));
  Overflowing source(*bench.source, part, name);
  try {
    const Evaluator e({.source = source,
                       .questions = bench.questions,
                       .batch_size = 2,
                       .seed = 0,
                       .device = "cpu",
                       .parts = true,
                       .group_bytes = 0,
                       .progress = kQuiet,
                       .numbers = {10, 11, 12, 13}});
  } catch (const Error& error) {
    EXPECT_EQ(error.advice(),
              "float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise");
    return {error.message(), error.place()};
  }
  return {};
}

// The shortest samples are run first, and the first of them has the number 11 in the input.
TEST(Evaluator, ANetworkThatOverflowsIsRefusedByTheNameOfThePlace) {
  using Said = std::pair<std::string, std::string>;
  const std::string words = "the activations hold NaN, Inf, or numbers whose squares overflow";
  EXPECT_EQ(refused("blocks.1", "mlp.W_out"), Said(words, "blocks.1.hook_resid_post, sample 11, token 0"));
  EXPECT_EQ(refused("embed", "W_pos"), Said(words, "blocks.0.hook_resid_pre, sample 11, token 0"));
  EXPECT_EQ(refused("unembed", "W_U"),
            Said("the loss is not a finite number", "unembed.hook_out, sample 11"));
}

TEST(Units, ExpertsAreCountedWhereTheirNumberIsTheDefault) {
  ModelSpec spec = tiny_spec();
  const auto experts = [&](std::map<std::string, double> options) {
    spec.blocks[1].mlp_branch()->part.name = "experts";
    spec.blocks[1].mlp_branch()->part.options = std::move(options);
    return units_of(spec, UnitKind::expert).size();
  };
  EXPECT_EQ(experts({}), 4u);
  EXPECT_EQ(experts({{"experts", 5}}), 5u);
}

TEST(Evaluator, AMaskedModelIsJudgedWhereItIsAsked) {
  Bench b(tiny_spec(NormPlace::post), 0, 49);
  ASSERT_EQ(b.questions.kind, LossKind::masked);
  EXPECT_EQ(b.evaluator->asked(), (std::vector<int64_t>{1, 1, 1, 2}));
  EXPECT_EQ(b.evaluator->full().loss.size(), 4u);
  const Judged j = b.evaluator->run(alone({{UnitKind::head, 1, 2}})).front();
  for (size_t s = 0; s < 4; ++s) EXPECT_NE(j.loss[s], b.evaluator->full().loss[s]);
}

TEST(Evaluator, PassesAreThoseOfTheRestOfABlockOfWhatFollowsAndOfTheLogits) {
  Bench b(tiny_spec(NormPlace::pre));
  const std::vector<Unit> heads = units_of(b.spec, UnitKind::head);
  // By hand, multiply-adds a token: block 4 * 24 * 24 + 2 * 24 * 40 = 4224, its MLP 1920, logits 24 * 50 =
  // 1200.
  const double logits = 1200.0 / (3 * 4224), rest = 1920.0 / (3 * 4224);
  const double by_hand = 1 + logits + 12 * (rest + logits) + 4 * (2.0 + 1.0) / 3;
  // One token still scores itself: 2 * 24 multiply-adds more in each block.
  EXPECT_NEAR(b.evaluator->bound(heads), by_hand, 0.02 * by_hand);
  b.evaluator->run(alone(heads));
  EXPECT_LE(b.evaluator->passes(), b.evaluator->bound(heads) + 0.1);
  EXPECT_GT(b.evaluator->passes(), 0.8 * b.evaluator->bound(heads));
}

TEST(Evaluator, WhatStandsInAnMlpsPlaceIsPartOfTheBound) {
  for (const Replacement by : {Replacement::zero, Replacement::mean, Replacement::resample}) {
    Bench b(tiny_spec(NormPlace::pre));
    std::vector<Variation> variations;
    for (const Unit& u : units_of(b.spec, UnitKind::mlp)) variations.push_back({u.layer, u, by, {}});
    b.evaluator->run(variations);
    const double bound = b.evaluator->bound(units_of(b.spec, UnitKind::mlp), by);
    EXPECT_LE(b.evaluator->passes(), bound + 0.1) << to_string(by);
    EXPECT_GT(b.evaluator->passes(), 0.8 * bound) << to_string(by);
  }
}

TEST(Evaluator, WithoutAHeadTheLastStateIsCompared) {
  ModelSpec spec = tiny_spec(NormPlace::post);
  spec.output = {};
  Bench b(spec);
  EXPECT_TRUE(b.evaluator->full().loss.empty());
  const Judged j = b.evaluator->run(alone({{UnitKind::head, 0, 0}})).front();
  PassPlan plan;
  plan.variants = {{"full", spec, 0, 0}, {"other", without(spec, "head:L0H0"), 0, 0}};
  plan.sources = {b.source.get()};
  plan.inputs = {make_batches(b.samples, spec, 8)};
  plan.layers.assign(3, true);
  ResultTable table;
  std::vector<std::string> notes;
  const std::vector<FinalState> states = run_pass(plan, table, notes, {});
  compare_outputs(states[0], plan, {&states[1]}, plan, table, notes);
  EXPECT_NEAR(arithmetic_mean(j.kl).value, table.find("other", "output_error", -1)->value, kRounding);
}

TEST(KvLatent, OfFullWidthChangesNothingAndOfLessHasThatRank) {
  const ModelSpec spec = tiny_spec(NormPlace::pre);
  const auto source = random_source(spec, 4, "float64", "cpu");
  const Weights stored = source->load("blocks.0");
  const auto stacked = [](const Weights& w) {
    return at::cat({w.get("attn.W_K").view({4, 6, 24}), w.get("attn.W_V").view({4, 6, 24})}, 1);
  };
  const Weights same = with_kv_latent(stored, spec.blocks[0], 12);
  EXPECT_LT((stacked(same) - stacked(stored)).abs().max().item<double>(), 1e-12);
  const Weights cut = with_kv_latent(stored, spec.blocks[0], 5);
  const at::Tensor gain = stored.get("ln1.w");
  const at::Tensor sigma = at::linalg_svdvals(stacked(cut) * gain);
  EXPECT_LT(sigma.narrow(1, 5, 7).max().item<double>(), 1e-12);
  EXPECT_GT(sigma.select(1, 4).min().item<double>(), 1e-3);
  // The norm's bias reaches keys and values as before.
  const auto constant = [&](const Weights& w) {
    return at::mv(w.get("attn.W_K"), w.get("ln1.b")) + w.get("attn.b_K");
  };
  EXPECT_LT((constant(cut) - constant(stored)).abs().max().item<double>(), 1e-12);
}

TEST(Savings, KeysAndValuesGoWithTheLastHeadThatReadsThem) {
  ModelSpec spec = tiny_spec(NormPlace::pre);
  for (BlockSpec& b : spec.blocks) b.attention().kv_heads = 2;
  // Q and O of one head: 24 * 12 and 6 biases of the query.
  EXPECT_EQ(parameters_saved(spec, {{0, 0}}), 24 * 12 + 6);
  EXPECT_EQ(cache_saved(spec, {{0, 0}}), 0);
  EXPECT_EQ(parameters_saved(spec, {{0, 0}, {0, 1}}), 2 * (24 * 12 + 6) + 24 * 12 + 12);
  EXPECT_DOUBLE_EQ(cache_saved(spec, {{0, 0}, {0, 1}}), 1.0 / 6);
}

// Qwen3-Next in a stream of 18. Layer 2 is gated attention, three heads of width 8 on one KV head; the others
// keep a state, four heads with values of 5 on two with keys of 6, behind convolutions over 4 tokens.
TEST(Savings, CountGatesAndAllThatADeltaRuleHasOfAHead) {
  const ModelSpec spec = Checkpoint(test::fixtures() / "models" / "qwen3-next").spec();
  const int64_t gated = 3 * 8 * 18;  // queries, gate and outputs
  EXPECT_EQ(parameters_saved(spec, {{2, 1}}), gated);
  EXPECT_EQ(parameters_saved(spec, {{2, 0}, {2, 1}, {2, 2}}), 3 * gated + 2 * 8 * 18);
  // Values, their gate and outputs, the values' filter, what is written and kept, rate and bias of the last.
  const int64_t writing = 3 * 5 * 18 + 5 * 4 + 2 * 18 + 2;
  const int64_t shared = 2 * (6 * 18 + 6 * 4);  // queries and keys with their filters
  EXPECT_EQ(parameters_saved(spec, {{0, 0}}), writing);
  EXPECT_EQ(parameters_saved(spec, {{0, 1}, {0, 2}}), 2 * writing);  // of either group one stays
  EXPECT_EQ(parameters_saved(spec, {{0, 2}, {0, 3}}), 2 * writing + shared);
  // All keys and values that a cache holds are those of layer 2.
  EXPECT_EQ(cache_saved(spec, {{0, 0}, {0, 1}, {2, 0}, {2, 1}}), 0);
  EXPECT_EQ(cache_saved(spec, {{2, 0}, {2, 1}, {2, 2}}), 1);
}

// Gates on keys or values belong to the KV head; those behind the output map, and those of all heads, to
// none.
TEST(Savings, GiveAGateToWhomItGates) {
  for (const int place : {1, 2, 3, 4, 5})
    for (const bool by_head : {false, true}) {
      ModelSpec spec = tiny_spec(NormPlace::pre);  // four heads of 6 in a stream of 24
      BranchSpec& branch = *spec.blocks[0].attention_branch();
      branch.part.name = "gated_attention";
      if (place > 1) branch.part.options["place"] = place;  // defaults are left out
      if (by_head) branch.part.options["by_head"] = 1;
      branch.attention()->kv_heads = 2;
      const int64_t gate = (by_head ? 1 : 6) * (24 + 1);
      const int64_t head = 24 * 12 + 6 + (place == 1 || place == 4 ? gate : 0);
      const int64_t kv_head = 24 * 12 + 12 + (place == 2 || place == 3 ? gate : 0);
      EXPECT_EQ(parameters_saved(spec, {{0, 0}}), head) << place;
      EXPECT_EQ(parameters_saved(spec, {{0, 0}, {0, 1}}), 2 * head + kv_head) << place;
      branch.part.options["shared"] = 1;
      EXPECT_EQ(parameters_saved(spec, {{0, 0}}), 24 * 12 + 6) << place;
    }
}

// All heads of DeepSeek read one latent of 9 and one key of 4 that positions turn: a cache loses them last.
TEST(Savings, KnowWhatACacheKeeps) {
  const ModelSpec spec = Checkpoint(test::fixtures() / "models" / "deepseek-v3").spec();
  EXPECT_EQ(cached_of_a_token(*spec.blocks[0].attention_branch(), spec.width), 9 + 4);
  EXPECT_EQ(cache_saved(spec, {{0, 0}, {0, 1}}), 0);
  EXPECT_DOUBLE_EQ(cache_saved(spec, {{0, 0}, {0, 1}, {0, 2}}), 1.0 / 3);
}

// Blocks that share their weights need a head's as long as one of them has the head.
TEST(Savings, OfSharedBlocksComeOnce) {
  ModelSpec spec = tiny_spec(NormPlace::pre);
  const int64_t alone = parameters_saved(spec, {{0, 0}});
  for (BlockSpec& b : spec.blocks) b.weights = 0;
  HeadSet out{{0, 0}};
  EXPECT_EQ(parameters_saved(spec, out), 0);
  for (int64_t l = 1; l < spec.depth(); ++l) out.insert({l, 0});
  EXPECT_EQ(parameters_saved(spec, out), alone);
}

TEST(Units, KindsAreReadAndUnknownOnesAnswered) {
  EXPECT_EQ(parse_kinds("heads").exact, std::vector{UnitKind::head});
  EXPECT_TRUE(parse_kinds("heads").estimates);
  EXPECT_EQ(parse_kinds("layers,mlps").exact, (std::vector{UnitKind::mlp, UnitKind::layer}));
  EXPECT_EQ(parse_kinds("all").exact.size(), 4u);
  EXPECT_TRUE(parse_kinds("estimates").exact.empty());
  EXPECT_THROW(parse_kinds("head"), Error);
  EXPECT_THROW(parse_kinds("heads,"), Error);
  EXPECT_THROW(parse_replacements("none"), Error);
  EXPECT_EQ(parse_replacements("mean,zero").size(), 2u);
}

// Student's intervals and tests ask for the error of a mean with divisor n - 1: that of the bootstrap has n.
TEST(StandIns, HaveTheErrorOfAMeanOverSamples) {
  Bench b(tiny_spec(NormPlace::pre));
  const auto width = static_cast<size_t>(b.spec.blocks[0].attention().d_v);
  const std::vector<FixedHead> heads{{0, 1, std::vector<double>(width, 0.0)},
                                     {2, 3, std::vector<double>(width, 0.0)}};
  ResultTable table;
  measure_stand_ins(*b.evaluator, heads, {{0, 1}}, "pair:", table);
  ASSERT_EQ(table.rows.size(), 2u);
  const auto without = [&](const std::vector<FixedHead>& some) {
    ModelSpec spec = b.spec;
    Variation v;
    v.first = some.front().layer;
    for (const FixedHead& h : some) spec = with_fixed_head(spec, h.layer, h.head, h.values);
    for (const FixedHead& h : some) v.edits[h.layer] = {spec.blocks[static_cast<size_t>(h.layer)], 0};
    return v;
  };
  const Variation both = without(heads);
  const Judged more =
      b.evaluator->beyond_added({without({heads[0]}), without({heads[1]})}, {both}, {{0, 1}}).front();
  ASSERT_EQ(more.kl.size(), b.samples.size());
  EXPECT_EQ(table.rows[0].variant, "pair:L0H1+L2H3");
  EXPECT_EQ(table.rows[0].metric, "stand_in");
  EXPECT_EQ(table.rows[0].value, arithmetic_mean(more.kl).value);
  EXPECT_EQ(table.rows[0].stderr_, arithmetic_mean(more.kl).stderr_);
  EXPECT_EQ(table.rows[1].metric, "stand_in_loss");
  EXPECT_EQ(table.rows[1].value, arithmetic_mean(more.loss).value);
  EXPECT_EQ(table.rows[1].stderr_, arithmetic_mean(more.loss).stderr_);
}

}  // namespace
}  // namespace rankscope
