#include "studies/config.h"

#include <gtest/gtest.h>

#include "base/test_support.h"
#include "studies/overrides.h"
#include "sweep/fake_runner.h"

namespace rankscope::test {
namespace {

const std::vector<Key>& keys() { return fake_runner().keys; }
std::string said(const std::string& text) { return to_text(parse_override(text, keys())); }

TEST(Config, TheCanonicalTextIsSortedAndReadsBack) {
  const Config config = complete(keys(), {{"rank", int64_t{8}}, {"lr", 0.003}}, "here");
  const std::string text = canonical(config);
  EXPECT_EQ(
      text,
      R"({"bias":true,"d":16,"fault":"none","heads":1,"lr":0.003,"norm":"unit","pause":0,"rank":8,"seed":0,)"
      R"("steps":5})");
  EXPECT_EQ(parse_canonical(text, keys()), config);
}

TEST(Config, AnIdIsTheSameOnEveryMachineAndDiffersBetweenConfigurations) {
  const Config config = complete(keys(), {}, "here");
  EXPECT_EQ(trial_id("fake", config), "0e22f824008e7503");
  EXPECT_NE(trial_id("fake", config), trial_id("train", config));
  EXPECT_NE(trial_id("fake", config), trial_id("fake", complete(keys(), {{"seed", int64_t{1}}}, "here")));
}

TEST(Config, AWholeNumberMayBeWrittenAsAFloatAndTheOtherWayRound) {
  const Config config = complete(keys(), {{"steps", 1e5}, {"lr", int64_t{1}}}, "here");
  EXPECT_EQ(integer(config, "steps"), 100000);
  EXPECT_EQ(number(config, "lr"), 1.0);
}

TEST(Config, AZeroHasNoSignSoThatItIsOneSettingAndOneTrial) {
  const Config plain = complete(keys(), {{"lr", 0.0}}, "here"),
               minus = complete(keys(), {{"lr", -0.0}}, "here");
  EXPECT_EQ(canonical(minus), canonical(plain));
  EXPECT_EQ(said("lr=-0,-0.0"), "lr=0,0");
}

TEST(Config, AnotherWordForADefaultIsTheDefault) {
  const Key key{.name = "attention", .otherwise = std::string("soft"), .help = "", .also = "softmax"};
  EXPECT_EQ(to_text(checked(key, std::string("softmax"), "test")), "soft");
  EXPECT_EQ(to_text(checked(key, std::string("hard"), "test")), "hard");
}

TEST(Config, WhatAKeyMayBeIsSaidInWords) {
  const auto said = [](Scalar otherwise, double low, double high) {
    return values_text(
        {.name = "x", .otherwise = std::move(otherwise), .help = "", .low = low, .high = high});
  };
  EXPECT_EQ(said(int64_t{1}, 1, 64), "a whole number from 1 to 64");
  EXPECT_EQ(said(0.5, 0, 1e300), "a number of at least 0");
  EXPECT_EQ(said(0.5, -1e300, 1), "a number of at most 1");
  EXPECT_EQ(said(0.5, -1e300, 1e300), "a number");
  EXPECT_EQ(said(true, -1e300, 1e300), "true or false");
  EXPECT_EQ(said(std::string(), 0, 0), "a word");
  EXPECT_EQ(values_text({.name = "x", .otherwise = std::string("a"), .help = "", .choices = {"a", "b"}}),
            "one of a, b");
}

TEST(Config, WhatIsWrongIsNamed) {
  const auto fault = [](const Config& given) {
    return error_of([&] { complete(keys(), given, "my.toml, line 3"); });
  };
  EXPECT_EQ(fault({{"heds", int64_t{1}}}).render(),
            "error: there is no key \"heds\"\n  in   my.toml, line 3\n  try  heads, d, bias"
            "   (rankscope study keys RUNNER shows all 10)\n");
  EXPECT_EQ(fault({{"rank", 1.5}}).message(), "rank: expected a whole number, but got 1.5");
  EXPECT_EQ(fault({{"rank", int64_t{0}}}).message(),
            "rank: expected a whole number from 1 to 1024, but got 0");
  EXPECT_EQ(fault({{"steps", int64_t{0}}}).message(),
            "steps: expected a whole number of at least 1, but got 0");
  EXPECT_EQ(fault({{"lr", std::nan("")}}).message(), "lr: expected a number from 0 to 10, but got nan");
  EXPECT_EQ(fault({{"norm", std::string("units")}}).render(),
            "error: norm: expected one of none, unit, but got units\n  in   my.toml, line 3\n  try  unit\n");
  EXPECT_EQ(fault({{"bias", std::string("on")}}).message(), "bias: expected true or false, but got on");
}

TEST(Overrides, OptionsOfAKindOfAttentionStayWithIt) {
  const std::vector<Key> words{{"kind", std::string("softmax"), "how it attends"}};
  const Axis axis =
      parse_override("kind=softmax,fastmax:p=2,norm=own_mean,mixed:full=1,local=2,linear", words);
  ASSERT_EQ(axis.points.size(), 4u);
  EXPECT_EQ(std::get<std::string>(axis.points[1][0]), "fastmax:p=2,norm=own_mean");
  EXPECT_EQ(std::get<std::string>(axis.points[2][0]), "mixed:full=1,local=2");
  EXPECT_THROW(parse_override("kind=fastmax:p=2,", words), Error);
}

TEST(Overrides, ArePrintedBackInOneForm) {
  EXPECT_EQ(said("lr=0.0030,1e-2"), "lr=0.003,0.01");
  EXPECT_EQ(said("rank=1,8,64"), "rank=1,8,64");
  EXPECT_EQ(said("heads=1..5"), "heads=1,2,3,4,5");
  EXPECT_EQ(said("d=8..128*2"), "d=8,16,32,64,128");
  EXPECT_EQ(said("lr=0..1+0.25"), "lr=0,0.25,0.5,0.75,1");
  EXPECT_EQ(said("lr=0.1..0.3+0.1"), "lr=0.1,0.2,0.3");  // the trial that lr=0.3 names
  EXPECT_EQ(said("lr=0..1e+1+5"), "lr=0,5,10");
  EXPECT_EQ(said("d=1,4..6,1e2"), "d=1,4,5,6,100");
  EXPECT_EQ(said("bias=false"), "bias=false");
  EXPECT_EQ(said("lr=1..10*10"), "lr=1,10");
  EXPECT_EQ(said(said("d=8..128*2")), "d=8,16,32,64,128");
}

TEST(Overrides, WhatCannotBeMeantIsRefused) {
  const auto fault = [](const std::string& text) { return error_of([&] { said(text); }).message(); };
  EXPECT_EQ(fault("rank"), "expected KEY=VALUES, but got \"rank\"");
  EXPECT_EQ(fault("rank="), "expected KEY=VALUES, but got \"rank=\"");
  EXPECT_EQ(fault("rnk=1"), "there is no key \"rnk\"");
  EXPECT_EQ(fault("rank=1,,2"), "there is nothing between two commas");
  EXPECT_EQ(fault("rank=,2"), "there is nothing before the first comma");
  EXPECT_EQ(fault("rank=1,"), "there is nothing behind the last comma");
  EXPECT_EQ(fault("rank=eight"), "rank: expected a whole number, but got eight");
  EXPECT_EQ(fault("d=8..4"), "the range 8..4 goes nowhere");
  EXPECT_EQ(fault("lr=0.003..0.01"), "the range 0.003..0.01 has one value: its next step is beyond its end");
  EXPECT_EQ(fault("d=8..64*1"), "the range 8..64*1 goes nowhere");
  EXPECT_EQ(fault("seed=0..99999999"), "the range 0..99999999 has more than 10000 values");
  EXPECT_EQ(fault("rank=1..2+0.5"), "rank: expected a whole number, but got 1.5");
}

}  // namespace
}  // namespace rankscope::test
