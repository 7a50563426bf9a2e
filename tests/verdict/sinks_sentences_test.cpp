// What is said of heads that look at one key. A table is planted, the words must follow.
#include <algorithm>

#include "verdict/planted_table.h"

namespace rankscope {
namespace {

TEST_F(Verdict, ASinkIsNamedByItsKindItsMarginAndItsSlope) {
  sink(0, 0, 1.2);
  sink(1, 0, 5);
  sink(1, 1, 4);
  sink(4, 1, 7);
  head(4, 1, "sink_first", 0.96);
  head(4, 1, "sink_slope", -0.25);
  head(4, 1, "sink_key_mass", 0.8);
  head(4, 1, "sink_scatter", 0.3);
  head(4, 1, "sink_drained", 0.02);
  EXPECT_EQ(said("sink"), Lines{"3 of 4 heads are sinks (2 in layer 1, 1 in layer 4): the strongest is L4H1 "
                                "with margin 7 ± 0.007 nats on "
                                "the first token (threshold 3; keys in random order: 0.4; slope in log "
                                "length -0.25; half of the queries are within 0.3 of the median; its value "
                                "writes 0.02 ± 2e-05 of what others do; mass 0.8 at "
                                "this length)"});
  EXPECT_EQ(all("sink").front().layer, 4);
  EXPECT_EQ(all("sink").front().head, 1);
}

TEST_F(Verdict, AHeadThatIsASinkInHalfOfTheSamplesIsNotCountedAsOne) {
  const auto in_samples = [&](int layer, double often, double else_, const char* variant = "full") {
    sink(layer, 0, (often + else_) / 2, variant);
    for (int64_t s = 0; s < 8; ++s)
      table_.samples.push_back({variant, fmt::format("blocks.{}.attn", layer), layer, 0, "sink_margin", "all",
                                s, s % 2 == 0 ? often : else_});
  };
  in_samples(1, 8, 2);
  EXPECT_EQ(said("sink").front().substr(0, 68),
            "no head is a sink in three quarters of the samples: the strongest is");
  sink(3, 0, 3.001);  // and one of which that is not known
  EXPECT_EQ(said("sink").front().substr(0, 25), "no head is clearly a sink");
  table_.rows.resize(table_.rows.size() - 2);
  EXPECT_EQ(said("sink").back(),
            "sinks in some samples and not in others, by margins above 3 nats: L1H0 in 4 of 8 samples");
  EXPECT_TRUE(std::ranges::any_of(all("sink").back().claims, [](const Claim& claim) {
    return claim.subject == "sink in some L1H0" && claim.answer == Claim::Answer::yes;
  })) << "a finding, which is told in full";
  in_samples(2, 5, 4);
  EXPECT_EQ(said("sink").front().substr(0, 102),
            "1 of 2 heads are sinks in three quarters of the samples or more (1 in layer 2): the strongest "
            "is L2H0 ");
  // A baseline's heads are counted by the same rule: a model is its own equal.
  in_samples(1, 8, 2, "baseline");
  in_samples(2, 5, 4, "baseline");
  EXPECT_NE(said("sink").front().find("; baseline: 1"), std::string::npos) << said("sink").front();
}

// Whatever the mean is: three samples of eight at 4 nats and five at -8 have one of -3.5.
TEST_F(Verdict, AHeadThatIsASinkInSomeSamplesIsNamedThoughItsMeanIsFarBelow) {
  const auto in_samples = [&](int head, int often, double else_) {
    table_.rows.push_back({"full", "blocks.0.attn", 0, head, "sink_margin",
                           (4.0 * often + else_ * (8 - often)) / 8, 0.001, 8, 1, "all"});
    table_.rows.push_back({"full", "blocks.0.attn", 0, head, "sink_margin_null", -1, 0.001, 8, 1, "all"});
    for (int64_t s = 0; s < 8; ++s)
      table_.samples.push_back(
          {"full", "blocks.0.attn", 0, head, "sink_margin", "all", s, s < often ? 4 : else_});
  };
  in_samples(0, 3, -8);
  in_samples(1, 7, -20);  // in nearly all, and one outweighs them
  in_samples(2, 1, 0);    // one sample is chance
  in_samples(3, 0, 1);
  EXPECT_EQ(said("sink").front().substr(0, 72),
            "no head is a sink by its mean and in three quarters of the samples: the ");
  EXPECT_EQ(said("sink").back(),
            "sinks in some samples and not in others, by margins above 3 nats: L0H1 in 7 of 8 samples, L0H0 "
            "in 3 of 8");
}

TEST_F(Verdict, OfASinkThatSomeQueriesDoNotSeeItIsSaidHowManyDo) {
  sink(0, 0, 5);
  head(0, 0, "sink_key_position", 9);
  head(0, 0, "sink_key_position_share", 1);
  head(0, 0, "sink_key_seen", 0.42);
  EXPECT_NE(said("sink").front().find("on position 9, which 42 % of the queries see (threshold"),
            std::string::npos)
      << said("sink").front();
  table_.rows.clear();
  sink(0, 0, 5);  // another key in every sample
  head(0, 0, "sink_key_seen", 0.42);
  EXPECT_NE(said("sink").front().find(", each sample's seen by 42 % of its queries in the mean (threshold"),
            std::string::npos)
      << said("sink").front();
  head(0, 0, "sink_first", 0.6);  // all queries see that one, and fewer the others
  EXPECT_NE(said("sink").front().find(
                "on the first token in 60 % of the samples, each sample's seen by 42 % of its queries"),
            std::string::npos)
      << said("sink").front();
  table_.rows.clear();
  sink(0, 0, 5);
  head(0, 0, "sink_first", 1);
  head(0, 0, "sink_key_seen", 0.99);
  EXPECT_EQ(said("sink").front().find("queries see"), std::string::npos) << said("sink").front();
}

TEST_F(Verdict, OfHeadsWithoutAMarginItIsSaidWhatAMarginNeeds) {
  sink(0, 0, 5);
  for (const int h : {0, 1}) head(0, h, "head_output_rel", 0.2);
  EXPECT_NE(said("sink").front().find("(1 in layer 0), of the 1 of 2 heads that have a number: "),
            std::string::npos);
  EXPECT_EQ(said("sink").back(),
            "? not known for L0H1: a margin needs shares of attention, and a key that a quarter of the "
            "queries see");
}

TEST_F(Verdict, WhereEveryHeadIsTooNearNothingIsSaidOfAll) {
  sink(0, 0, 3.001);
  EXPECT_FALSE(all("sink").front().known) << "no normal finding: nothing was decided";
}

TEST_F(Verdict, AWindowThatIsLongerThanTheTextHidesNoMargin) {
  for (BlockSpec& b : spec_.blocks) b.attention().window = 4096;
  EXPECT_EQ(said("sink").front().find("windows"), std::string::npos) << said("sink").front();
}

TEST_F(Verdict, WithWindowsAloneItIsSaidWhyThereIsNoMargin) {
  for (BlockSpec& b : spec_.blocks) b.attention().window = 4;
  EXPECT_EQ(said("sink"),
            Lines{"? not known: no sink_margin was measured; it needs a key that a quarter of the "
                  "queries see, and windows are short"});
}

TEST_F(Verdict, AKeyThatIsTheFirstTokenInMostSamplesAndAPositionInMoreIsNamedByThePosition) {
  const auto says = [&](double first, double position, const char* words) {
    table_.rows.clear();
    sink(0, 0, 5);
    head(0, 0, "sink_first", first);
    head(0, 0, "sink_key_position", 0);
    head(0, 0, "sink_key_position_share", position);
    EXPECT_NE(said("sink").front().find(words), std::string::npos) << said("sink").front();
  };
  says(0.6, 0.6, "on the first token in 60 % of the samples (");
  says(0.97, 1.0, "on the first token (");
  table_.rows.clear();
  sink(0, 0, 5);
  head(0, 0, "sink_special", 0.6);  // of which some are another token
  head(0, 0, "sink_key_token", 7);
  head(0, 0, "sink_key_token_share", 0.9);
  EXPECT_NE(said("sink").front().find("on token id 7 in 90 % of the samples ("), std::string::npos);
}

TEST_F(Verdict, ASinkMayBeAWordWhereverItStandsOrAPosition) {
  sink(0, 0, 5);
  head(0, 0, "sink_key_token", 102);
  head(0, 0, "sink_key_token_share", 1);
  head(0, 0, "sink_key_position_share", 0.1);
  head(0, 0, "sink_mass", 0.07);
  EXPECT_NE(said("sink").front().find("on token id 102, wherever it stands"), std::string::npos);
  EXPECT_EQ(said("sink").front().find("mass"),
            std::string::npos);  // of the strongest position, not of this key
  table_.rows.clear();
  sink(0, 0, 5);
  head(0, 0, "sink_key_mass", 0.7);
  head(0, 0, "sink_key_position", 20);
  head(0, 0, "sink_key_position_share", 1);
  EXPECT_NE(said("sink").front().find("on position 20"), std::string::npos);
  EXPECT_NE(said("sink").front().find("mass 0.7"), std::string::npos);
}

TEST_F(Verdict, OfAKeyThatIsNotAlwaysTheSameItIsSaidHowOftenItIs) {
  const auto says = [&](double position, double token, const char* words) {
    table_.rows.clear();
    sink(0, 0, 5);
    head(0, 0, "sink_key_token", 7);
    head(0, 0, "sink_key_token_share", token);
    head(0, 0, "sink_key_position", 3);
    head(0, 0, "sink_key_position_share", position);
    EXPECT_NE(said("sink").front().find(words), std::string::npos) << said("sink").front();
  };
  says(0.1, 0.625, "on token id 7 in 62 % of the samples (");
  says(0.75, 0.1, "on position 3 in 75 % of the samples (");
  says(0.5, 0.5, "on keys that change from sample to sample, position 3 in 50 % of them (");
  says(0.0, 0.0, "on a key that is another one in each sample (");
}

TEST_F(Verdict, ABaselinesSinksAreCountedBeside) {
  sink(0, 0, 5);
  sink(0, 0, 0.5, "baseline");
  EXPECT_NE(said("sink").front().find("1 of 1 heads are sinks (1 in layer 0)"), std::string::npos);
  EXPECT_NE(said("sink").front().find("; baseline: 0"), std::string::npos);
}

TEST_F(Verdict, WithoutSinksTheStrongestHeadIsNamed) {
  sink(0, 0, 1);
  sink(3, 1, 2);
  EXPECT_EQ(said("sink"), Lines{"no head is a sink: the strongest is L3H1 with margin 2 ± 0.002 nats on a "
                                "key that is another one in each "
                                "sample (threshold 3; keys in random order: 0.4)"});
}

TEST_F(Verdict, OfAMarginThatMayBeABoundItIsSaidThatItIsAtLeastThat) {
  sink(0, 0, 34);
  head(0, 0, "sink_slope", 1).n = 1;  // of one sample of many
  head(0, 0, "sink_scatter", 0.1);
  EXPECT_NE(said("sink").front().find("L0H0 with margin of at least 34 "), std::string::npos);
  EXPECT_EQ(said("sink").front().find("slope"), std::string::npos);
  EXPECT_EQ(said("sink").front().find("of the median"), std::string::npos);
}

TEST_F(Verdict, AMarginThatKeysInRandomOrderReachIsNoSink) {
  head(0, 0, "sink_margin", 4);
  head(0, 0, "sink_margin_null", 4.5);
  EXPECT_EQ(said("sink").front().substr(0, 17), "no head is a sink");
}

TEST_F(Verdict, AHeadNearTheThresholdIsNotKnownToBeASink) {
  sink(0, 0, 3.001);
  EXPECT_EQ(said("sink").back(),
            "? not known for L0H0: margins too near 3 nats for their errors; more samples would decide");
}

// One head of a hundred a little above the threshold is what chance gives: alone it would be counted.
TEST_F(Verdict, ManyHeadsAreCountedWithoutCountingChance) {
  for (int h = 0; h < 100; ++h) head(0, h, "sink_margin", 2.0).stderr_ = 1;
  table_.rows[0].value = 6.2;  // 3.2 errors above 3
  EXPECT_EQ(said("sink").front().substr(0, 27), "? no head is clearly a sink");
  table_.rows.resize(1);
  EXPECT_EQ(said("sink").front().substr(0, 22), "1 of 1 heads are sinks");
}

}  // namespace
}  // namespace rankscope
