// The size of value and output maps at the start, and what a trial tells of them at its end.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "studies/support/train_config.h"
#include "train/constructions.h"
#include "train/diagnose.h"
#include "train/layout.h"

namespace rankscope {
namespace {

Config layer(Config given = {}) {
  given.insert({{"model", std::string("layer")},
                {"task", std::string("nearest")},
                {"data", std::string("ortho")},
                {"d", int64_t{8}},
                {"n", int64_t{2}},
                {"queries", int64_t{1}},
                {"rank", int64_t{2}}});
  return complete(train_keys(), given, "test");
}

TEST(StartScale, AtItsDefaultLeavesTheNameOfATrialAlone) {
  EXPECT_EQ(layer({{"start_scale", 1.0}}), layer());
  EXPECT_NE(layer({{"start_scale", 2.0}}), layer());
}

TEST(StartScale, ChangesWhatCarriesValuesAndNothingElse) {
  for (const char* model : {"layer", "encoder"}) {
    Config c{{"model", std::string(model)}};
    if (c["model"] == Scalar(std::string("encoder")))
      c.insert({{"queries", int64_t{0}}, {"mlp", int64_t{16}}, {"layers", int64_t{2}}});
    const TrialSpec once = trial_of(layer(c));
    c["start_scale"] = 2.0;
    const TrialSpec twice = trial_of(layer(c));
    const std::vector<float> a = starting_parameters(once), b = starting_parameters(twice);
    int64_t scaled = 0;
    const Layout layout(once.network);
    for (const Slot& slot : layout.slots()) {
      const std::string& name = slot.parameter.name;
      const bool carries = name.ends_with("W_V") || name.ends_with("W_O");
      scaled += carries;
      for (int64_t i = slot.offset; i < slot.offset + element_count(slot.parameter); ++i)
        ASSERT_EQ(b[static_cast<size_t>(i)], (carries ? 2 : 1) * a[static_cast<size_t>(i)]) << name;
    }
    EXPECT_EQ(scaled, std::string(model) == "layer" ? 1 : 4);
  }
}

TEST(StartScale, IsOfRandomStarts) {
  try {
    check(trial_of(layer({{"start", std::string("identity")}, {"start_scale", 2.0}})));
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "start_scale is of random starts, and this one is identity");
  }
}

TEST(Diagnose, TellsHeadsOfOppositeSignApart) {
  TrialSpec t = trial_of(layer({{"start", std::string("identity")}}));  // every head passes I / heads on
  std::vector<float> p = starting_parameters(t);
  Alignment a = alignment(t.network, p);
  EXPECT_NEAR(a.ov_least, 0.25, 1e-7);
  EXPECT_NEAR(a.ov_most, 0.25, 1e-7);
  const Layout layout(t.network);
  for (const Slot& slot : layout.slots())
    if (slot.parameter.name.ends_with("W_O"))  // [8, 4 heads x 8]: the last head
      for (int64_t row = 0; row < 8; ++row)
        for (int64_t column = 24; column < 32; ++column)
          p[static_cast<size_t>(slot.offset + row * 32 + column)] *= -3;
  a = alignment(t.network, p);
  EXPECT_NEAR(a.ov_least, -0.75, 1e-6);
  EXPECT_NEAR(a.ov_most, 0.25, 1e-7);
}

TEST(Diagnose, MultipliesTheTwoMapsOfAnEncodersHead) {
  const TrialSpec t = trial_of(layer({{"model", std::string("encoder")},
                                      {"queries", int64_t{0}},
                                      {"mlp", int64_t{0}},
                                      {"width", int64_t{2}}}));
  const std::vector<float> p = starting_parameters(t);
  const Layout layout(t.network);
  const auto at = [&](const char* name, int64_t row, int64_t column) {
    for (const Slot& slot : layout.slots())
      if (slot.parameter.name == std::string("blocks.0.attn.") + name)
        return static_cast<double>(
            p[static_cast<size_t>(slot.offset + row * slot.parameter.shape[1] + column)]);
    return std::nan("");
  };
  double least = 1e9, most = -1e9;  // 8 heads of width 2, written out
  for (int64_t h = 0; h < 8; ++h) {
    double trace = 0;
    for (int64_t i = 0; i < 8; ++i)
      for (int64_t k = 2 * h; k < 2 * h + 2; ++k) trace += at("W_O", i, k) * at("W_V", k, i);
    trace /= 8 * 2;  // d, and two modules are averaged
    least = std::min(least, trace);
    most = std::max(most, trace);
  }
  const Alignment a = alignment(t.network, p);
  EXPECT_NEAR(a.ov_least, least, 1e-12);  // float32 weights, float64 sums of 16 products below 1
  EXPECT_NEAR(a.ov_most, most, 1e-12);
}

TEST(Diagnose, ReadsTheGainThatGivesAnswersTheirLength) {
  const auto network = [](Config settings) {
    settings.merge(
        Config{{"model", std::string("encoder")}, {"queries", int64_t{0}}, {"layers", int64_t{2}}});
    return trial_of(layer(settings));
  };
  const auto gain = [](const TrialSpec& t, const std::string& name) {
    std::vector<float> p = starting_parameters(t);
    const Layout layout(t.network);
    for (const Slot& slot : layout.slots())
      if (slot.parameter.name == name) p[static_cast<size_t>(slot.offset)] = 0.125F;
    return alignment(t.network, p).answer_gain;
  };
  EXPECT_EQ(gain(network({{"mlp", int64_t{8}}}), "blocks.1.ln2.w"), 0.125);
  EXPECT_EQ(gain(network({{"mlp", int64_t{8}}}), "blocks.1.ln1.w"), 1);  // not the last one
  EXPECT_EQ(gain(network({{"mlp", int64_t{0}}}), "blocks.1.ln1.w"), 0.125);
  const auto has_none = [&](Config settings) { return std::isnan(gain(network(std::move(settings)), "")); };
  EXPECT_TRUE(has_none({{"norm", std::string("layer")}}));
  EXPECT_TRUE(has_none({{"norm", std::string("none")}}));
  EXPECT_TRUE(
      has_none({{"norm_place", std::string("pre")}}));  // a norm in front leaves the answer's length alone
}

}  // namespace
}  // namespace rankscope
