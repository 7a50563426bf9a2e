// Studies choose parts and their options by keys that came after trials had names.
#include <gtest/gtest.h>

#include "base/error.h"
#include "operator/attention_bound.h"
#include "studies/support/train_config.h"

namespace rankscope {
namespace {

Config config(Config given) {
  given.insert({{"d", int64_t{8}}, {"n", int64_t{4}}, {"mlp", int64_t{8}}});
  return complete(train_keys(), given, "test");
}

std::string refusal(const Config& given) {
  try {
    check(trial_of(config(given)));
  } catch (const Error& e) {
    return e.message() + " | " + e.advice();
  }
  return "";
}

const Config kExperts{{"mlp_part", std::string("experts")}};

Config with_options(const std::string& options) {
  Config c = kExperts;
  c["options"] = options;
  return c;
}

TEST(PartKeys, AtTheirDefaultsLeaveTheNameOfATrialAlone) {
  const Config plain = config({});
  EXPECT_EQ(config({{"part", std::string("attention")}, {"mlp_part", std::string("mlp")}}), plain);
  EXPECT_EQ(plain.count("part"), 0u);
  EXPECT_NE(config({{"part", std::string("gated_attention")}}), plain);
}

TEST(PartKeys, OptionsReachTheBranchThatDeclaresThem) {
  const TrialSpec t = trial_of(config(with_options("active=1+experts=3")));
  const BranchSpec& mlp = *t.network.blocks[0].mlp_branch();
  EXPECT_EQ(mlp.part.options, (std::map<std::string, double>{{"active", 1}, {"experts", 3}}));
  EXPECT_TRUE(t.network.blocks[0].attention_branch()->part.options.empty());
}

TEST(PartKeys, OneNetworkHasOneText) {
  EXPECT_EQ(refusal(with_options("active=1+experts=3")), "");
  for (const char* same :
       {"experts=3+active=1", "active=1+experts=2+experts=3", "active=1+experts=3+", "active=1+experts=3.0"})
    EXPECT_NE(refusal(with_options(same)).find("options=active=1+experts=3"), std::string::npos) << same;
  EXPECT_NE(refusal(with_options("experts=4")).find("leave options out"), std::string::npos);
}

TEST(PartKeys, WhatCannotBeIsRefused) {
  EXPECT_NE(refusal(with_options("expert=3")).find("no part of this network has an option"),
            std::string::npos);
  EXPECT_NE(refusal(with_options("experts=")).find("is no option of a part"), std::string::npos);
  EXPECT_NE(refusal(with_options("active=9+experts=5")).find("cannot take 9 of 5"), std::string::npos);
  Config no_mlp = kExperts;
  no_mlp["mlp"] = int64_t{0};
  EXPECT_NE(refusal(no_mlp).find("no MLP for mlp_part"), std::string::npos);
  EXPECT_NE(
      refusal(
          {{"model", std::string("layer")}, {"mlp", int64_t{0}}, {"part", std::string("gated_attention")}})
          .find("plain attention"),
      std::string::npos);
  EXPECT_NE(refusal({{"attention", std::string("hard")}, {"part", std::string("relative_attention")}})
                .find("a pattern of its own"),
            std::string::npos);
}

// A gate depends on its token, so what attention writes is not cubic in the residual.
TEST(PartKeys, TheCubicBoundDoesNotSpeakOfAGate) {
  EXPECT_TRUE(bound_applies(trial_of(config({})).network.blocks[0]));
  EXPECT_FALSE(bound_applies(trial_of(config({{"part", std::string("gated_attention")}})).network.blocks[0]));
  EXPECT_FALSE(bound_applies(trial_of(config({{"attention", std::string("hard")}})).network.blocks[0]));
}

}  // namespace
}  // namespace rankscope
