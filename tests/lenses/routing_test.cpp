#include <gtest/gtest.h>

#include <cmath>

#include "support/lens_run.h"

namespace rankscope::testing {
namespace {

// Two samples of two and three tokens, four experts of which each token takes two.
at::Tensor shares() {
  return at::tensor(std::vector<double>{0.5, 0.5, 0,   0,  //
                                        0.9, 0,   0.1, 0,  //
                                        0,   0.5, 0.5, 0,  //
                                        0,   0.5, 0.5, 0,  //
                                        0,   0.5, 0.5, 0},
                    at::kDouble)
      .view({5, 4});
}

double effective(std::initializer_list<double> weights) {
  double total = 0, entropy = 0;
  for (const double w : weights) total += w;
  for (const double w : weights)
    if (w > 0) entropy -= w / total * std::log(w / total);
  return std::exp(entropy);
}

TEST(Routing, CountsWhoTakesWhom) {
  const Collected got = see_residual("routing", shares(), Packed({2, 3}));
  EXPECT_EQ(got.of("expert_load", 0, 0), 1.0);
  EXPECT_EQ(got.of("expert_load", 0, 1), 0.5);
  EXPECT_EQ(got.of("expert_load", 1, 0), 0.0);
  EXPECT_EQ(got.of("expert_load", 1, 2), 1.0);
  EXPECT_NEAR(got.of("experts_used", 0), effective({2, 1, 1}), 1e-15);
  EXPECT_NEAR(got.of("experts_used", 1), 2.0, 1e-15);
  EXPECT_NEAR(got.of("experts_per_token", 0), (2.0 + effective({0.9, 0.1})) / 2, 1e-15);
}

TEST(Routing, AnExpertIsDeadWhenNoTokenOfAnySampleTakesIt) {
  EXPECT_EQ(see_residual("routing", shares(), Packed({2, 3})).total("experts_dead").value, 1);
}

TEST(Routing, SharesNeedNotSumToOne) {
  const Collected one = see_residual("routing", shares(), Packed({2, 3})),
                  scaled = see_residual("routing", shares() * 2.5, Packed({2, 3}));
  EXPECT_NEAR(one.of("experts_per_token", 0), scaled.of("experts_per_token", 0), 1e-15);
}

// Of two layers with two experts, each token taking one.
double agreement_of(const std::vector<int64_t>& before, const std::vector<int64_t>& here,
                    const char* metric) {
  const auto taken = [](const std::vector<int64_t>& experts) {
    return at::one_hot(at::tensor(experts, at::kLong), 2).to(at::kDouble);
  };
  const Packed packed({static_cast<int64_t>(here.size())});
  const Packing packing = packed.packing();
  Seeing first(lens_named("routing"));
  first.whole({taken(before), packing});
  EXPECT_FALSE(first.finish().values.count({"expert_agreement", -1, "all"}));  // there is no layer before it
  LensContext context = any_context();
  context.before = first.left();
  Seeing second(lens_named("routing"), context);
  second.whole({taken(here), packing});
  return second.finish().total(metric).value;
}

TEST(Routing, AgreementIsOneWhereALayerTellsTheOtherAndNoneWhereItDoesNot) {
  EXPECT_NEAR(agreement_of({0, 1, 0, 1}, {1, 0, 1, 0}, "expert_agreement"), 1.0, 1e-14);
  EXPECT_NEAR(agreement_of({0, 0, 1, 1}, {0, 1, 0, 1}, "expert_agreement"), 0.0, 1e-14);
  // Two tokens away the experts are the others: that tells as much.
  EXPECT_NEAR(agreement_of({0, 0, 1, 1}, {0, 0, 1, 1}, "expert_agreement_null"), 1.0, 1e-14);
  EXPECT_NEAR(agreement_of({0, 1, 1, 0, 1, 1, 0, 0}, {0, 1, 1, 0, 1, 1, 0, 0}, "expert_agreement_null"), 0.0,
              1e-14);
  // Three of four tokens agree: I = log 2 - H(3/4) over log 2, by hand.
  const double h = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  EXPECT_NEAR(agreement_of({0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 1, 0}, "expert_agreement"),
              (std::log(2.0) - h) / std::log(2.0), 1e-14);
}

TEST(Routing, OneExpertForAllTellsNothing) {
  EXPECT_THROW(agreement_of({0, 0, 0}, {0, 1, 0}, "expert_agreement"), std::out_of_range);
}

TEST(ExpertWrites, TheRankIsThatOfWhatEachExpertWrites) {
  Seeing seeing(lens_named("expert_writes"));
  const at::Tensor three = at::eye(3, 5, at::TensorOptions().dtype(at::kDouble)) * 2.0;
  seeing.expert({1, three});
  seeing.expert({3, three.narrow(0, 0, 1)});  // one token in each of two batches, one direction
  seeing.expert({3, three.narrow(0, 0, 1) * 5});
  seeing.expert({2, three.narrow(0, 0, 1)});  // one token alone says nothing
  const Collected got = seeing.finish();
  EXPECT_NEAR(got.total("expert_rank", 1).value, 3.0, 1e-12);
  EXPECT_NEAR(got.total("expert_rank_rel", 1).value, 1.0, 1e-12);
  EXPECT_EQ(got.total("expert_rank", 1).n, 3);
  EXPECT_NEAR(got.total("expert_rank", 3).value, 1.0, 1e-12);
  EXPECT_NEAR(got.total("expert_rank_rel", 3).value, 0.5, 1e-12);
  EXPECT_EQ(got.values.count({"expert_rank", 2, "all"}), 0u);
  EXPECT_EQ(got.values.count({"expert_rank", 0, "all"}), 0u);
}

TEST(LearnedSinks, TheMassIsTheMeanOfWhatQueriesGiveByHead) {
  const at::Tensor given =
      at::tensor(std::vector<double>{0.2, 0.4, 0.6, 0.0, 1.0, 0.5}, at::kDouble).view({3, 2});
  const Collected got = see_residual("learned_sinks", given, Packed({2, 1}));
  EXPECT_NEAR(got.of("learned_sink_mass", 0, 0), 0.4, 1e-15);
  EXPECT_NEAR(got.of("learned_sink_mass", 0, 1), 0.2, 1e-15);
  EXPECT_NEAR(got.of("learned_sink_mass", 1), 0.75, 1e-15);
}

TEST(LearnedSinks, EntropyIsThatOfWhatIsLeftOfARow) {
  for (const bool learned : {true, false}) {
    ModelSpec spec;
    spec.blocks.push_back(classic_block(NormPlace::pre, {NormKind::layer}, {}, ""));
    spec.blocks[0].attention().sinks = learned;
    if (!learned) spec.blocks[0].attention().variant = "sink_column:score=2";
    const Packed packed({2});
    const Packing packing = packed.packing();
    const at::Tensor pattern =
        at::tensor(std::vector<double>{0.1, 0.1, 0.45, 0.45}, at::kDouble).view({1, 1, 2, 2});
    Seeing seeing(lens_named("attention"), {spec, 0, 17, 1, 0.3});
    seeing.tile({pattern, {0, 0, 2}, false, 0, packing});
    // Both rows are uniform over what the sink leaves.
    EXPECT_NEAR(seeing.finish().of("attention_entropy", 0, 0), 1.0, 1e-14);
  }
}

TEST(Latent, TheRankIsThatOfTheTokensOfASample) {
  const at::Tensor x = at::zeros({5, 4}, at::kDouble);
  for (int64_t i = 0; i < 3; ++i) x[i][i] = 2.0;  // three directions of one size
  x[3][0] = 1.0;                                  // the second sample has one
  x[4][0] = 7.0;
  const Collected got = see_residual("latent", x, Packed({3, 2}));
  EXPECT_NEAR(got.of("kv_latent_effective_rank", 0), 3.0, 1e-12);
  EXPECT_NEAR(got.of("kv_latent_effective_rank_rel", 0), 0.75, 1e-12);
  EXPECT_NEAR(got.of("kv_latent_stable_rank", 1), 1.0, 1e-12);
}

}  // namespace
}  // namespace rankscope::testing
