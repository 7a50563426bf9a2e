// rankscope paths from the inside: readings that must agree with each other.
#include "paths/paths.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "paths/chained.h"
#include "scan/fixture_request.h"

namespace rankscope {
namespace {

PathsRequest on_fixture(const char* name) {
  PathsRequest r;
  r.scan = test::random_tokens_through(name, 3, 9);
  return r;
}

const Row* find(const ScanResult& r, const char* variant, const char* metric, int length, int layer = -1,
                int head = -1) {
  for (const Row& row : r.table.rows)
    if (row.variant == variant && row.metric == metric && row.depth == length && row.layer == layer &&
        row.head == head && row.tokens == "all")
      return &row;
  return nullptr;
}
double value(const ScanResult& r, const char* variant, const char* metric, int length, int layer = -1,
             int head = -1) {
  const Row* row = find(r, variant, metric, length, layer, head);
  return row == nullptr ? kNone : row->value;
}

TEST(PathReadings, UpToTheLastLengthIsTheOutput) {
  for (const char* fixture : {"bert", "gpt2", "llama"}) {
    const ScanResult r = measure_paths(on_fixture(fixture), {});
    const int depth = static_cast<int>(r.spec.depth());
    EXPECT_LT(value(r, "upto", "output_kl", depth), 1e-12) << fixture;
    EXPECT_NEAR(value(r, "upto", "residual_fro", depth), value(r, "full", "residual_fro", -1), 1e-9);
    double share = value(r, "bias", "path_share", -1);
    for (int k = 0; k <= depth; ++k) share += value(r, "only", "path_share", k);
    EXPECT_NEAR(share, 1.0, 1e-12);
    EXPECT_GT(value(r, "allbut", "output_kl", 1), 0.0);
    ASSERT_EQ(r.verdict.size(), 1u);
    EXPECT_NE(r.verdict[0].sentence.find("carry more than any other length"), std::string::npos);
  }
}

// Three layers of three heads: 27 of 64 paths go through two of them, and 27 through all three.
TEST(PathReadings, TwoLengthsMayHaveEquallyManyPaths) {
  const ScanResult r = measure_paths(on_fixture("bert"), {});
  EXPECT_TRUE(r.verdict[0].sentence.ends_with("lengths 2 and 3 have equally many paths (42 % of 64 each)"))
      << r.verdict[0].sentence;
}

// Three layers of four heads that keep a state and one of three heads: (1 + 4)^3 (1 + 3) = 500 paths, of
// which 192 go through all four layers and 208 through three.
TEST(PathReadings, LayersThatDifferInTheirHeadsAreSummedAndNotDrawn) {
  PathsRequest request = on_fixture("qwen3-next");
  const ScanResult r = measure_paths(request, {});
  EXPECT_LT(value(r, "upto", "output_kl", 4), 1e-12);
  double share = value(r, "bias", "path_share", -1);
  for (int k = 0; k <= 4; ++k) share += value(r, "only", "path_share", k);
  EXPECT_NEAR(share, 1.0, 1e-12);
  EXPECT_NE(r.verdict[0].sentence.find("most paths have length 3 (42 % of 500)"), std::string::npos)
      << r.verdict[0].sentence;
  request.by = "head";
  const ScanResult heads = measure_paths(request, {});
  for (int l = 0; l < 4; ++l)
    for (int h = 0; h < 4; ++h)
      EXPECT_EQ(find(heads, "through", "path_norm", -1, l, h) != nullptr, l != 2 || h < 3);
  request.by = "length";
  request.semantics = "rerun";
  const auto refused = [&](const char* why) {
    try {
      measure_paths(request, {});
      ADD_FAILURE() << why;
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(why), std::string::npos) << e.what();
    }
  };
  refused("paths are drawn where every layer has as many heads, and these have 3 and 4");
  request.semantics = "frozen";
  request.chained = true;
  refused("in layer 0 a convolution mixes the tokens, too");
}

TEST(PathReadings, ByLayerAndByHeadNameWhatTheyWentThrough) {
  PathsRequest request = on_fixture("bert");
  request.by = "layer";
  const ScanResult layers = measure_paths(request, {});
  request.by = "head";
  const ScanResult heads = measure_paths(request, {});
  for (int l = 0; l < static_cast<int>(layers.spec.depth()); ++l) {
    EXPECT_GT(value(layers, "through", "path_norm", -1, l), 0.0);
    EXPECT_GT(value(layers, "through", "path_norm", 1, l), 0.0);
    for (int h = 0; h < static_cast<int>(layers.spec.blocks[0].attention().heads); ++h)
      EXPECT_GT(value(heads, "through", "path_norm", -1, l, h), 0.0);
  }
}

TEST(PathReadings, GradedPartsAddUpToTheSameOutput) {
  PathsRequest request = on_fixture("bert");
  const ScanResult plain = measure_paths(request, {});
  request.grade_mlp = request.grade_norm = true;
  const ScanResult graded = measure_paths(request, {});
  // Summed over MLPs and norms the lengths are what they were.
  for (int k = 0; k <= 3; ++k)
    EXPECT_NEAR(value(graded, "only", "path_norm", k), value(plain, "only", "path_norm", k), 1e-10);
  EXPECT_FALSE(std::isnan(value(graded, "mlp", "path_norm", 3)));
  EXPECT_FALSE(std::isnan(value(graded, "norm", "path_norm", 6)));
}

TEST(PathReadings, SampledPathsHaveErrorBarsUnlessTheyAreAll) {
  PathsRequest request = on_fixture("bert");
  request.semantics = "rerun";
  request.paths = 3;
  request.repeats = 4;
  const ScanResult r = measure_paths(request, {});
  const Row* none = find(r, "rerun", "residual_fro_rel", 0);
  const Row* some = find(r, "rerun", "residual_fro_rel", 2);
  ASSERT_NE(none, nullptr);
  ASSERT_NE(some, nullptr);
  EXPECT_EQ(none->stderr_, 0.0);  // there is one path of length 0
  EXPECT_GT(some->stderr_, 0.0);
  EXPECT_EQ(some->n, 4);
  request.semantics = "subpaths";
  EXPECT_NE(value(measure_paths(request, {}), "subpaths", "effective_rank", 3),
            value(r, "rerun", "effective_rank", 3));
}

TEST(PathReadings, ChainedAttentionDrawsNearToRankOne) {
  for (const char* fixture : {"bert", "gpt2"}) {
    PathsRequest request = on_fixture(fixture);
    request.chained = true;
    request.chains = 12;
    const ScanResult r = measure_paths(request, {});
    const int depth = static_cast<int>(r.spec.depth());
    double before = 2;
    for (int k = 1; k <= depth; ++k) {
      const double median = value(r, "chained", "path_rank1_distance", k);
      EXPECT_LT(median, before) << fixture << k;
      EXPECT_LE(value(r, "chained", "path_rank1_distance_q1", k), median);
      EXPECT_GE(value(r, "chained", "path_rank1_distance_q3", k), median);
      before = median;
    }
    ASSERT_EQ(r.verdict.size(), 1u);
    EXPECT_TRUE(r.verdict[0].known);
    EXPECT_LT(r.verdict[0].value, 1.0);
    request.reference_order = true;
    const ScanResult other = measure_paths(request, {});
    EXPECT_EQ(value(other, "chained", "path_rank1_distance", 1),
              value(r, "chained", "path_rank1_distance", 1));
    EXPECT_NE(value(other, "chained", "path_rank1_distance", depth),
              value(r, "chained", "path_rank1_distance", depth));
  }
}

TEST(PathReadings, TheRateOfChainsEndsWhereRoundingBegins) {
  const std::string rate =
      "each further attention matrix on a path multiplies the distance from rank one by ";
  EXPECT_EQ(chained_rate({1, 0.5, 0.25}, 1e-13).sentence, rate + "0.5 (lengths 1 to 3, medians)");
  EXPECT_EQ(chained_rate({1, 0.5, 4e-16, 5e-16}, 1e-13).sentence,
            rate + "0.5 (lengths 1 to 2, medians); at length 3 they are of rank one up to rounding");
  EXPECT_FALSE(chained_rate({4e-16, 4e-16}, 1e-13).known);
}

TEST(PathReadings, AlphaIsWhatALayerPassesOn) {
  PathsRequest request = on_fixture("bert");
  request.by = "layer";
  const ScanResult r = measure_paths(request, {});
  for (int l = 0; l < static_cast<int>(r.spec.depth()); ++l) {
    EXPECT_GT(value(r, "through", "path_alpha", -1, l), 0.0);
    EXPECT_LT(value(r, "through", "path_alpha", -1, l), 1.0);
  }
}

TEST(PathReadings, NumbersThatCannotBeAreRefusedBeforeTheModelIsRead) {
  const auto fault = [](auto set) -> std::string {
    PathsRequest request;
    request.scan.model = "/nowhere";
    request.semantics = "rerun";
    set(request);
    try {
      measure_paths(request, {});
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  };
  EXPECT_EQ(fault([](auto& r) { r.repeats = 0; }), "--repeats should be from 1 to 1000, not 0");
  EXPECT_EQ(fault([](auto& r) { r.repeats = -1; }), "--repeats should be from 1 to 1000, not -1");
  EXPECT_EQ(fault([](auto& r) { r.paths = 0; }), "--paths should be from 1 to 100000, not 0");
  EXPECT_EQ(fault([](auto& r) { r.chains = 0; }), "--chains should be from 1 to 100000, not 0");
  EXPECT_EQ(fault([](auto&) {}).find("--"), std::string::npos);  // the model, then
}

TEST(PathReadings, WrongWordsAreAnswered) {
  PathsRequest request = on_fixture("bert");
  request.by = "heads";
  EXPECT_THROW(measure_paths(request, {}), Error);
  request.by = "head";
  request.semantics = "rerun";
  EXPECT_THROW(measure_paths(request, {}), Error);
}

}  // namespace
}  // namespace rankscope
