// The studies compose (the sheet on hybrid linear-full attention, (d) 2, 5 and 6) and gate-samples (that on
// gated attention, (d) 4 and 5).
#include <gtest/gtest.h>

#include "base/error.h"
#include "studies/run_one.h"

namespace rankscope {
extern const Runner runner_compose, runner_gate_samples;
namespace {

using Values = std::map<std::string, double>;

Values composed(int64_t functions, const std::string& order, int64_t width = 0) {
  return test::outcome_of(runner_compose, {{"functions", functions}, {"order", order}, {"width", width}});
}

TEST(ComposeRunner, OneLayerMoreThanFunctionsMakesNoMistake) {
  for (int64_t L = 1; L <= 4; ++L) {
    const Values v = composed(L, "");
    EXPECT_EQ(v.at("accuracy"), 1.0) << L;
    EXPECT_LE(v.at("off"), 1e-6) << L;
    EXPECT_EQ(v.at("full_layers"), static_cast<double>(L + 1));
    EXPECT_FALSE(v.contains("state_bits"));
  }
}

TEST(ComposeRunner, OneFullLayerLessIsNearChance) {
  for (const auto& [L, order] :
       {std::pair<int64_t, const char*>{1, "full"}, {2, "full+full"}, {3, "full+full+full"}}) {
    const Values v = composed(L, order);
    EXPECT_LE(v.at("accuracy"), v.at("chance") + 0.05) << L;
  }
}

// A state in the place of a full layer: what goes from token to token gives the same numbers as the pattern,
// and counts as width times bits of a value.
TEST(ComposeRunner, AStateIsOneMessageAndLosesTheAnswerUnlessItIsWide) {
  for (const char* form : {"linear", "delta"}) {
    const std::string order = std::string("full+full+") + form;
    const Values narrow = composed(2, order), wide = composed(2, order, 1024);
    EXPECT_LE(narrow.at("handed_off"), 1e-10) << form;
    EXPECT_LE(wide.at("handed_off"), 1e-10) << form;
    EXPECT_LT(narrow.at("accuracy"), 0.5) << form;
    EXPECT_GT(wide.at("accuracy"), 0.99) << form;
    EXPECT_EQ(wide.at("state_bits"), 1024 * 5 * 64) << form;
  }
}

TEST(ComposeRunner, TheTheoremIsVacuousAtEveryLengthThereIs) {
  const auto bound = [](double log2_tokens) {
    return test::outcome_of(
        runner_compose,
        {{"reading", std::string("bound")}, {"functions", int64_t{1}}, {"log2_tokens", log2_tokens}});
  };
  EXPECT_EQ(bound(20).at("vacuous"), 1.0);
  EXPECT_EQ(bound(639).at("vacuous"), 1.0);
  EXPECT_EQ(bound(640).at("vacuous"), 0.0);
  EXPECT_EQ(bound(20).at("log2_tokens_hybrids_fail"), 640.0);
}

TEST(ComposeRunner, RefusesOrdersItCannotRun) {
  const auto refused = [](const Config& given) {
    EXPECT_THROW(runner_compose.check(complete(runner_compose.keys, given, "test")), Error);
  };
  refused({{"order", std::string("full+lineal")}});
  refused({{"order", std::string("full++full")}});
  refused({{"order", std::string("full+full+full+full")}});
  refused({{"functions", int64_t{6}}, {"choices", int64_t{64}}});
}

Values fitted(const char* experts, int64_t atoms) {
  return test::outcome_of(runner_gate_samples, {{"experts", std::string(experts)},
                                                {"atoms", atoms},
                                                {"replicates", int64_t{4}},
                                                {"samples", int64_t{1000}}});
}

// Least squares on a model that is right and identified: errors fall as one over the square root of the
// number of samples, here to within three standard errors of the slope over 20 fits.
TEST(GateSamplesRunner, WithAsManyAtomsAsThereAreErrorsFallByTheSquareRoot) {
  for (const char* experts : {"linear", "gated"}) {
    const Values v = fitted(experts, 1);
    for (const std::string what : {"voronoi", "function"}) {
      EXPECT_LT(v.at(what + "_slope_error"), 0.08) << experts << " " << what;
      EXPECT_NEAR(v.at(what + "_slope"), -0.5, 3 * v.at(what + "_slope_error")) << experts << " " << what;
    }
    EXPECT_EQ(v.contains("gate"), std::string(experts) == "gated");
  }
}

TEST(GateSamplesRunner, OtherNumbersOfSamplesAreRefused) {
  EXPECT_THROW(
      runner_gate_samples.check(complete(runner_gate_samples.keys, {{"samples", int64_t{500}}}, "test")),
      Error);
}

}  // namespace
}  // namespace rankscope
