// The studies of docs/ATTENTION.md: small networks that differ in how they attend, pairs in a state, and keys
// that are explained away.
#include <gtest/gtest.h>

#include <cmath>

#include "attention/variant.h"
#include "base/error.h"
#include "studies/study.h"
#include "studies/support/kinds.h"
#include "support/temporary_folder.h"

namespace rankscope {
extern const Runner runner_kinds, runner_recall, runner_explained_away;
namespace {

using Values = std::map<std::string, double>;

// Several configurations as one stack.
std::vector<Values> results(const Runner& runner, const std::vector<Config>& given) {
  const TemporaryFolder folder;
  std::vector<TrialJob> jobs;
  for (const Config& some : given) {
    const Config config = complete(runner.keys, some, "test");
    runner.check(config);
    const std::string id = trial_id(runner.name, config);
    jobs.push_back({id, config, folder.path() / id});
  }
  const std::atomic<bool> stop{false};
  RunContext context;
  context.stop = &stop;
  std::vector<Values> out(given.size());
  context.finished = [&](size_t job, const Outcome& outcome) {
    EXPECT_FALSE(outcome.failed) << outcome.reason;
    out[job] = outcome.values;
  };
  runner.run(jobs, context);
  return out;
}
Values result(const Runner& runner, const Config& given) { return results(runner, {given}).front(); }

Config small(const std::string& kind, bool causal) {
  return {{"kind", kind},         {"causal", causal},     {"task", std::string("retrieval")},
          {"layers", int64_t{2}}, {"tokens", int64_t{6}}, {"d", int64_t{16}},
          {"mlp", int64_t{0}},    {"positions", false},   {"steps", int64_t{2}},
          {"batch", int64_t{8}},  {"train", int64_t{64}}, {"test", int64_t{32}},
          {"depth", int64_t{2}}};
}

TEST(KindsRunner, EveryKindTrainsAndIsRead) {
  for (const AttentionKind& kind : attention_kinds()) {
    const bool causal = attention_variant(kind.variant).only_causal;
    const Values v = result(runner_kinds, small(std::string(kind.name), causal));
    for (const char* name : {"error", "loss", "spread", "rank_rel", "attention_rank_rel", "forward_ms"}) {
      ASSERT_TRUE(v.contains(name)) << kind.name << " " << name;
      EXPECT_TRUE(std::isfinite(v.at(name))) << kind.name << " " << name;
    }
    EXPECT_LE(v.at("attention_rank_rel"), 1 + 1e-6) << kind.name;
    // Of attention whose entries are no shares there is no sink to speak of.
    const bool shares = v.contains("sink_margin");
    EXPECT_EQ(shares, kind.variant != "sigmoid" && kind.variant != "linear" && kind.variant != "decay" &&
                          kind.variant != "delta" && kind.variant != "differential" &&
                          kind.variant != "mixed")
        << kind.name;
    EXPECT_EQ(v.contains("hybrid_share"), kind.name == "hybrid_normalised");
  }
}

TEST(KindsRunner, AKindAndItsMaskMustGoTogether) {
  const auto refused = [](const std::string& kind, bool causal) {
    EXPECT_THROW(runner_kinds.check(complete(runner_kinds.keys, small(kind, causal), "test")), Error) << kind;
  };
  refused("delta", false);
  refused("gated_delta", false);
  refused("doubly_normalised", true);
  refused("sinkhorn:rounds=3", true);
  refused("softmacks", false);
  refused("fastmax:q=2", false);
}

// One seed in the small: softmax learns to retrieve, and with its skips taken off the same network loses rank
// and some of its answers. Six seeds gave errors of 0 with skips and .21 to .59 without, ranks of .74 to .80
// and of .39 to .47.
TEST(KindsRunner, SoftmaxRetrievesAndNeedsItsSkips) {
  Config on = small("softmax", false);
  on["steps"] = int64_t{250};
  on["batch"] = int64_t{32};
  on["train"] = int64_t{4096};
  on["test"] = int64_t{512};
  on["lr"] = 0.01;
  Config off = on;
  off["skips"] = std::string("off");
  const std::vector<Values> v = results(runner_kinds, {on, off});
  EXPECT_LT(v[0].at("error"), 0.05);
  EXPECT_GT(v[1].at("error"), 0.1);
  EXPECT_GT(v[0].at("rank_rel"), 0.65);
  EXPECT_LT(v[1].at("rank_rel"), 0.55);
  EXPECT_EQ(v[0].at("final_loss"), v[1].at("final_loss"));  // one training
}

// A dose of sink is a look at a trained network: a large one puts all attention on the first key, its
// controls do not, and only softmax takes a dose.
TEST(KindsRunner, ADoseOfSinkGoesWhereItIsSent) {
  const auto dosed = [](const char* kind, double nats, const char* to) {
    Config c = small(kind, true);
    c["shift"] = nats;
    c["shift_to"] = std::string(to);
    return c;
  };
  const std::vector<Values> v =
      results(runner_kinds, {small("softmax", true), dosed("softmax", 30, "first"),
                             dosed("softmax", 30, "nothing"), dosed("softmax", 30, "random")});
  for (const Values& one : v) EXPECT_EQ(one.at("final_loss"), v[0].at("final_loss"));
  EXPECT_LT(v[0].at("sink_mass"), 0.8);
  EXPECT_GT(v[1].at("sink_mass"), 0.999);
  EXPECT_LE(v[2].at("sink_mass"),
            v[0].at("sink_mass"));  // the first key keeps what it had, the others nothing
  EXPECT_LT(v[3].at("sink_mass"), 0.999);
  EXPECT_NE(v[1].at("loss"), v[0].at("loss"));
  for (const Values& one : v) EXPECT_TRUE(one.contains("mixing"));
  EXPECT_THROW(runner_kinds.check(complete(runner_kinds.keys, dosed("sink_column", 1, "first"), "test")),
               Error);
}

// The rank law in a network: heads 4 wide whose scores are products of 5 features have rank 5 on 24 tokens.
TEST(KindsRunner, TheRankOfFastmaxStaysAtItsCeiling) {
  Config c = small("fastmax:p=1,norm=own_mean", false);
  c["tokens"] = int64_t{24};
  c["heads"] = int64_t{4};
  const Values v = result(runner_kinds, c);
  EXPECT_EQ(v.at("rank_ceiling"), 4);  // channels are centred: one dimension less
  EXPECT_EQ(v.at("attention_rank"), 4);
  EXPECT_EQ(result(runner_kinds, small("softmax", false)).contains("rank_ceiling"), false);
}

// Filters that make eight keys of 24 tokens leave compressed heads a rank of eight; local heads may have all.
TEST(KindsRunner, TheRankOfCompressedHeadsStaysAtTheirCeiling) {
  Config c = small("mixed:compressed=2,kernel=3,stride=3", false);
  c["tokens"] = int64_t{24};
  const Values v = result(runner_kinds, c);
  EXPECT_EQ(v.at("rank_ceiling"), 8);
  EXPECT_EQ(v.at("attention_rank"), 8);
  EXPECT_GT(v.at("head_evenness"), 0.5);
  EXPECT_LE(v.at("head_evenness"), 1 + 1e-12);
  c["kind"] = std::string("mixed:local=1,compressed=1,kernel=3,stride=3,window=9");
  const Values mixed = result(runner_kinds, c);
  EXPECT_EQ(mixed.at("rank_ceiling"), (24 + 8) / 2.0);  // mean over heads
  EXPECT_LE(mixed.at("attention_rank"), mixed.at("rank_ceiling"));
}

// Layers may attend in different ways: a mixed network has the parameters of each of its layers.
TEST(KindsRunner, EveryLayerMayHaveAKindOfItsOwn) {
  const auto parameters = [](const char* kind) {
    return result(runner_kinds, small(kind, true)).at("parameters");
  };
  const double softmax = parameters("softmax"), delta = parameters("delta");
  EXPECT_GT(delta, softmax);
  EXPECT_EQ(parameters("softmax/delta"), (softmax + delta) / 2);
  EXPECT_EQ(parameters("softmax/softmax"), softmax);
  EXPECT_THROW(runner_kinds.check(complete(runner_kinds.keys, small("softmax/delta/softmax", true), "test")),
               Error);
  EXPECT_THROW(runner_kinds.check(complete(runner_kinds.keys, small("softmax/delta", false), "test")), Error);
}

// One seed of heads-mixed in the small: two seeds gave .35 and .36 for compressed heads alone, which do not
// see what is near, and .12 and .23 for one of each kind.
TEST(KindsRunner, AMixtureOfHeadsSeesTwoScales) {
  const auto wrong = [](const char* kind) {
    return result(runner_kinds, {{"task", std::string("two_scales")},
                                 {"kind", std::string(kind)},
                                 {"layers", int64_t{1}},
                                 {"d", int64_t{16}},
                                 {"mlp", int64_t{32}},
                                 {"tokens", int64_t{64}},
                                 {"steps", int64_t{150}},
                                 {"batch", int64_t{16}},
                                 {"train", int64_t{2048}},
                                 {"test", int64_t{64}},
                                 {"lr", 0.02}});
  };
  const Values mixed = wrong("mixed:local=1,compressed=1,window=24,kernel=7,stride=3"),
               alone = wrong("mixed:compressed=2,kernel=7,stride=3");
  EXPECT_LT(mixed.at("wrong"), alone.at("wrong") - 0.05);
  EXPECT_LT(mixed.at("wrong_near"), alone.at("wrong_near"));
  EXPECT_LT(mixed.at("wrong_leads"), 0.1);
}

// compose-trained in the small: functions of two values, which states alone compose, too. Two seeds got 0 and
// .02 wrong; guessing gets .75.
TEST(KindsRunner, StatesLearnToComposeTwoSmallFunctions) {
  const Values v = result(runner_kinds, {{"task", std::string("composition")},
                                         {"kind", std::string("linear")},
                                         {"causal", true},
                                         {"layers", int64_t{2}},
                                         {"depth", int64_t{2}},
                                         {"tokens", int64_t{8}},
                                         {"steps", int64_t{400}},
                                         {"train", int64_t{32768}},
                                         {"test", int64_t{256}},
                                         {"lr", 0.006}});
  EXPECT_LT(v.at("wrong"), 0.15);
}

Values recall(const char* form, int64_t pairs) {
  return result(runner_recall, {{"form", std::string(form)}, {"pairs", pairs}, {"draws", int64_t{10}}});
}

// The bounds of the sheet on hybrid attention, (d) 4: a state of 32 x 32.
TEST(RecallRunner, AStateGivesBackFewerPairsThanSoftmaxAndTheDeltaRuleMoreThanLinear) {
  EXPECT_EQ(recall("softmax", 256).at("recalled"), 1);
  EXPECT_LE(recall("linear", 32).at("recalled"), 0.05);
  EXPECT_LE(recall("delta", 32).at("recalled"), 0.30);
  EXPECT_GT(recall("delta", 32).at("recalled"), recall("linear", 32).at("recalled"));
  EXPECT_LE(recall("delta", 64).at("recalled"), 0.10);
  EXPECT_EQ(recall("delta", 2).at("recalled"), 1);
}

TEST(RecallRunner, TheRankOfTheStateIsThatOfThePairsUntilItIsFull) {
  for (const char* form : {"linear", "decay", "delta", "gated_delta"}) {
    EXPECT_EQ(recall(form, 8).at("state_rank"), 8) << form;
    EXPECT_EQ(recall(form, 64).at("state_rank"), 32) << form;
  }
  EXPECT_FALSE(recall("softmax", 8).contains("state_rank"));
}

Values explained(const char* reading, const char* normalisation, double bias) {
  return result(runner_explained_away, {{"reading", std::string(reading)},
                                        {"normalisation", std::string(normalisation)},
                                        {"bias", bias},
                                        {"draws", int64_t{50}}});
}

// The sheet on doubly normalised attention, (d) 2 to 4.
TEST(ExplainedAwayRunner, ADominantKeyTakesFromSoftmaxAndNotFromDoublyNormalisedAttention) {
  const Values softmax = explained("pattern", "softmax", 8),
               doubly = explained("pattern", "doubly_normalised", 8);
  EXPECT_GT(softmax.at("explained_away"), 10);
  EXPECT_EQ(doubly.at("explained_away"), 0);
  EXPECT_GE(doubly.at("least_column"), 1 - 1e-12);
  EXPECT_LT(softmax.at("effective_rank"), 2);
  // The bias of a key changes nothing: the same draws without it, to the rounding of 16 singular values.
  EXPECT_NEAR(doubly.at("effective_rank"), explained("pattern", "doubly_normalised", 0).at("effective_rank"),
              1e-9);
  EXPECT_EQ(explained("em", "doubly_normalised", 0).at("likelihood_fell"), 0);
  EXPECT_GT(explained("em", "softmax", 0).at("likelihood_fell"), 0);
  EXPECT_THROW(runner_explained_away.check(
                   complete(runner_explained_away.keys, {{"normalisation", std::string("linear")}}, "test")),
               Error);
}

}  // namespace
}  // namespace rankscope
