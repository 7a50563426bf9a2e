// What is said of massive activations, and of hostile names. A table is planted, the words must follow.
#include "verdict/planted_table.h"

namespace rankscope {
namespace {

TEST_F(Verdict, MassiveActivationsNameTokenAndChannel) {
  for (const int l : {1, 2, 3, 5})
    add("full", fmt::format("blocks.{}.hook_resid_post", l), l, -1, "massive_ratio", 2000 + l);
  add("full", "blocks.4.hook_resid_post", 4, -1, "massive_ratio", 40);
  add("full", "blocks.5.hook_resid_post", 5, -1, "massive_token", 0);
  add("full", "blocks.5.hook_resid_post", 5, -1, "massive_channel", 447);
  add("baseline", "blocks.5.hook_resid_post", 5, -1, "massive_ratio", 35);
  EXPECT_EQ(said("massive"),
            Lines{"massive activations after layers 1-3 and 5: on average over samples up to 2005 ± 2 times "
                  "the median at "
                  "blocks.5.hook_resid_post, position 0, channel 447; threshold 1000, baseline 35"});
}

TEST_F(Verdict, TextsThatAreTooShortDecideNothingAboutActivationsAndHeads) {
  shortest_ = 1;
  add("full", "blocks.4.hook_resid_post", 4, -1, "massive_ratio", 40);
  head(0, 0, "head_varied_rel", 0.2);
  for (const char* topic : {"massive", "head"})
    EXPECT_EQ(said(topic),
              Lines{"? not known: the shortest sample has 1 content token, and so few decide nothing "
                    "(short_text 8)"});
}

TEST_F(Verdict, WithoutMassiveActivationsTheLargestIsNamed) {
  add("full", "blocks.4.hook_resid_post", 4, -1, "massive_ratio", 40);
  add("full", "blocks.4.ln1.hook_normalized", 4, -1, "massive_ratio", 5000);
  EXPECT_EQ(said("massive"), Lines{"no massive activations in what blocks leave: the largest mean over "
                                   "samples is 40 ± 0.04 times the median at "
                                   "blocks.4.hook_resid_post; threshold 1000, no baseline"});
}

TEST_F(Verdict, MassiveEmbeddingsAreAmongThePlaces) {
  add("full", "blocks.0.hook_resid_pre", 0, -1, "massive_ratio", 5000).depth = 0;
  add("full", "blocks.0.hook_resid_post", 0, -1, "massive_ratio", 4000);
  EXPECT_TRUE(
      said("massive").front().starts_with("massive activations in the embeddings and after layer 0: "))
      << said("massive").front();
}

TEST_F(Verdict, WhatIsSurelyMassiveIsSaidBesideSomethingLargerThatIsNotKnown) {
  add("full", "blocks.1.hook_resid_post", 1, -1, "massive_ratio", 4000);
  Row& wild = add("full", "blocks.5.hook_resid_post", 5, -1, "massive_ratio", 150000);
  wild.stderr_ = 140000;
  const Lines lines = said("massive");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with(
      "massive activations after layer 1: on average over samples up to 4000 ± 4 times the median at "
      "blocks.1.hook_resid_post"))
      << lines[0];
  EXPECT_TRUE(lines[1].starts_with("? not known at blocks.5.hook_resid_post")) << lines[1];
}

TEST_F(Verdict, OneSampleHasNoErrorAndIsNotSaidToBeNearAThreshold) {
  Row& one = add("full", "blocks.4.hook_resid_post", 4, -1, "massive_ratio", 40);
  one.n = 1;
  one.stderr_ = kNone;
  EXPECT_EQ(said("massive"), Lines{"? not known at blocks.4.hook_resid_post (40): one sample has no error; "
                                   "more samples would decide"});
  one.n = 2;  // twelve standard errors and more are needed
  one.stderr_ = 200;
  EXPECT_EQ(said("massive"),
            Lines{"? not known at blocks.4.hook_resid_post (40 ± 2e+02): 2 samples are too few to "
                  "tell from 1000 times the median; more samples would decide"});
}

TEST_F(Verdict, HostileVariantNamesAreShownNotObeyed) {
  output_kl("-\x1b[2J", 1);
  output_kl("rank:\x1b[2J", 1);
  for (const Finding& f : judge(table_, spec_, limits_, {shortest_}))
    EXPECT_EQ(f.sentence.find('\x1b'), std::string::npos);
}

// One of sixteen has a ratio of 3777, the others of 5: the mean is 241 +- 236.
TEST_F(Verdict, ASampleThatIsMassiveByItsOwnNumberIsNamedWhateverTheMeanIs) {
  Row& mean = add("full", "blocks.0.hook_resid_pre", 0, -1, "massive_ratio", 241);
  mean.n = 16, mean.stderr_ = 236;
  add("full", "blocks.0.hook_resid_pre", 0, -1, "massive_token", 20);
  add("full", "blocks.0.hook_resid_pre", 0, -1, "massive_channel", 5);
  std::vector<double> values(16, 5);
  samples("blocks.0.hook_resid_pre", 0, "massive_ratio", values);
  EXPECT_TRUE(said("massive").front().starts_with("no massive activations in what blocks leave: "));
  table_.samples[3].value = 3777;
  EXPECT_EQ(
      said("massive"),
      Lines{"massive activations in 1 of 16 samples: up to 3777 times the median, in sample 3 at "
            "blocks.0.hook_resid_pre, position 20, channel 5; threshold 1000; the largest mean over samples "
            "is 241 ± 2.4e+02 at blocks.0.hook_resid_pre"});
  EXPECT_EQ(all("massive").front().value, 3777);
  // It stands out, and says neither yes nor no of all samples.
  ASSERT_EQ(all("massive").front().claims.size(), 2u);
  EXPECT_EQ(all("massive").front().claims[0].answer, Claim::Answer::yes);
  EXPECT_EQ(all("massive").front().claims[1].answer, Claim::Answer::unknown);
}

TEST_F(Verdict, WhereAllActivationsAreZeroNothingIsSaidOfMassiveOnes) {
  add("full", "blocks.4.hook_resid_post", 4, -1, "massive_ratio", 40);
  for (const int l : {4, 5})
    add("full", fmt::format("blocks.{}.hook_resid_post", l), l, -1, "residual_fro", 1);
  EXPECT_EQ(
      said("massive").back(),
      "? not known at blocks.5.hook_resid_post: there is no median to be large beside, as all activations "
      "are zero");
  // In some samples alone: a mean over the others says nothing of them.
  add("full", "blocks.5.hook_resid_post", 5, -1, "massive_ratio", 40).n = 1;
  table_.rows[2].n = 4;
  EXPECT_EQ(
      said("massive").back(),
      "? not known at blocks.5.hook_resid_post in 3 of 4 samples: there is no median to be large beside, "
      "as all activations are zero");
}

}  // namespace
}  // namespace rankscope
