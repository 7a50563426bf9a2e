#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kernels/cpu/small_spectra.h"
#include "lenses/support/sampled_rows.h"
#include "spectral/batch.h"
#include "support/lens_run.h"
#include "support/reference.h"

namespace rankscope::testing {
namespace {

constexpr double kMixing = 1e-6;  // what spectral_norm promises, relative

/// How far a number of A may be off when every sigma is off by at most `error` of the largest.
struct Tolerances {
  double effective_rank, stable_rank, spectral_gap, mixing;  // mixing: of itself
};

Tolerances tolerances(const at::Tensor& a, const std::vector<double>& s) {
  const double full = static_cast<double>(a.size(0));
  const Spectrum found = spectra_of_batch(a)[0];  // for the route it takes and the error it states
  if (found.route != "lanes") {
    const double error = std::sqrt(0x1p-52 * 2 * full) * s[0];
    return {reference::effective_rank_tolerance(s, error), 1e-12 * full, 1e-11 * s[0], kMixing};
  }
  // stable_rank = sum r^2, r = sigma / sigma_1: r is off by e (1 + r), so the sum by 2 e sum r (1 + r).
  const double e = small_spectra_error(a.size(0), a.size(1));
  double stable = 0;
  for (const double v : s) stable += 2 * e * v / s[0] * (1 + v / s[0]);
  return {reference::effective_rank_tolerance(s, e * s[0], false), stable, 2 * e * s[0], e};
}

void expect_matches(const Collected& got, const at::Tensor& a, int64_t sample, int head) {
  const std::vector<double> s = reference::sigma(a);
  const double full = static_cast<double>(a.size(0)), rank = reference::effective_rank(s);
  const Tolerances near = tolerances(a, s);
  const double gap = s[0] - (s.size() > 1 ? s[1] : 0.0), mixing = reference::mixing(a);
  EXPECT_NEAR(got.of("effective_rank", sample, head), rank, near.effective_rank);
  EXPECT_NEAR(got.of("effective_rank_rel", sample, head), rank / full, near.effective_rank / full);
  EXPECT_NEAR(got.of("stable_rank", sample, head), reference::stable_rank(s), near.stable_rank);
  EXPECT_EQ(got.of("numerical_rank", sample, head), reference::numerical_rank(s, a.size(0), 0x1p-23));
  EXPECT_NEAR(got.of("spectral_gap", sample, head), gap, near.spectral_gap);
  EXPECT_NEAR(got.of("mixing", sample, head), mixing, near.mixing * mixing + 1e-14);
}

class PatternSpectra : public ::testing::TestWithParam<MaskKind> {};

TEST_P(PatternSpectra, MatchTheReferenceWholeAndInTiles) {
  at::manual_seed(1);
  const MaskKind mask = GetParam();
  std::vector<at::Tensor> patterns;
  for (const int64_t T : {1, 2, 9, 33, 60}) patterns.push_back(random_pattern(2, T, mask));
  for (const int64_t rows : {0, 1, 10}) {
    const Collected got = see_patterns("pattern_spectra", patterns, mask, rows);
    for (size_t s = 0; s < patterns.size(); ++s)
      for (int h = 0; h < 2; ++h) expect_matches(got, patterns[s][h], static_cast<int64_t>(s), h);
  }
}

TEST_P(PatternSpectra, MixingOfUniformAttentionMatchesTheFormedMatrix) {
  const MaskKind mask = GetParam();
  for (const int64_t T : {1, 2, 17, 64}) {
    const at::Tensor u = reference::uniform(T, mask.causal, mask.window);
    const double expected = reference::mixing(u);
    const Collected got = see_patterns("pattern_spectra", {u.unsqueeze(0)}, mask);
    EXPECT_NEAR(got.of("mixing_uniform"), expected, kMixing * expected + 1e-14) << T;
    EXPECT_NEAR(got.of("mixing", 0, 0), expected,
                tolerances(u, reference::sigma(u)).mixing * expected + 1e-14)
        << T;
  }
}

INSTANTIATE_TEST_SUITE_P(Masks, PatternSpectra,
                         ::testing::Values(MaskKind{}, MaskKind{true, 0}, MaskKind{true, 4},
                                           MaskKind{false, 5}));

TEST(PatternSpectra, OfUniformAttentionAreRankOneAndMixNothing) {
  const Collected got = see_patterns("pattern_spectra", {at::full({1, 16, 16}, 1.0f / 16)}, {});
  EXPECT_NEAR(got.of("effective_rank", 0, 0), 1, 1e-6);
  EXPECT_EQ(got.of("numerical_rank", 0, 0), 1);
  EXPECT_NEAR(got.of("spectral_gap", 0, 0), 1, 1e-7);
  EXPECT_NEAR(got.of("mixing", 0, 0), 0, 1e-15);
  EXPECT_EQ(got.of("mixing_uniform"), 0);
}

TEST(PatternSpectra, OfAPermutationAreFullAndKeepEveryDifference) {
  at::manual_seed(2);
  const at::Tensor p = at::eye(12).index_select(0, at::randperm(12)).unsqueeze(0);
  const Collected got = see_patterns("pattern_spectra", {p}, {});
  EXPECT_NEAR(got.of("effective_rank", 0, 0), 12, 1e-12);
  EXPECT_EQ(got.of("numerical_rank", 0, 0), 12);
  EXPECT_NEAR(got.of("spectral_gap", 0, 0), 0, 1e-14);
  EXPECT_NEAR(got.of("mixing", 0, 0), 1, 1e-12);
}

TEST(PatternSpectra, OfFloat64TakeTheExactRoute) {
  at::manual_seed(3);
  const at::Tensor a = at::softmax(at::randn({1, 10, 10}, at::kDouble), -1);
  const double expected = reference::effective_rank(reference::sigma(a[0]));
  EXPECT_NEAR(see_patterns("pattern_spectra", {a}, {}).of("effective_rank", 0, 0), expected,
              1e-13 * expected);
}

TEST(PatternSpectra, OfFewerQueriesThanKeysAreThoseOfTheMatrix) {
  at::manual_seed(5);
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{4, 9}, {9, 4}}) {
    const at::Tensor a = at::softmax(at::randn({1, queries, keys}, at::kDouble), -1);
    const std::vector<double> s = reference::sigma(a[0]);
    for (const int64_t rows : {0, 3}) {
      const Collected got = see_patterns("pattern_spectra", {a}, {}, rows);
      EXPECT_NEAR(got.of("effective_rank", 0, 0), reference::effective_rank(s), 1e-12);
      EXPECT_NEAR(got.of("spectral_gap", 0, 0), s[0] - s[1], 1e-13);
      EXPECT_NEAR(got.of("mixing", 0, 0), reference::mixing(a[0]), kMixing);
      EXPECT_EQ(got.of("mixing_uniform"), 0);
    }
  }
}

TEST(SampledRows, AreDisjointSortedAndDrawnFromTheSeedAlone) {
  const auto groups = draw_rows(3, 5, 600);
  std::set<int64_t> seen;
  for (const auto& group : groups) {
    EXPECT_EQ(group.size(), 256u);
    EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
    seen.insert(group.begin(), group.end());
  }
  EXPECT_EQ(seen.size(), 512u);
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), 600);
  EXPECT_EQ(groups, draw_rows(3, 5, 600));
  EXPECT_NE(groups, draw_rows(4, 5, 600));
  EXPECT_NE(groups, draw_rows(3, 6, 600));
}

TEST(PatternSpectra, OfLongMatricesAreReadThroughSampledRowsWholeOrInTiles) {
  at::manual_seed(4);
  const at::Tensor p = random_pattern(2, 600, {true});
  const Collected whole = see_patterns("pattern_spectra", {p}, {true});
  const Collected tiled = see_patterns("pattern_spectra", {p}, {true}, 128);
  const auto rows = draw_rows(any_context().seed, 0, 600);
  for (int h = 0; h < 2; ++h) {
    std::vector<double> ranks, mixing;
    for (const auto& group : rows) {
      const at::Tensor a = p[h].index_select(0, at::tensor(group, at::kLong));
      ranks.push_back(reference::effective_rank(reference::sigma(a)));
      mixing.push_back(std::sqrt(600.0 / 256) * reference::mixing(a));
    }
    const auto& rank = whole.total("effective_rank_rows256", h);
    EXPECT_NEAR(rank.value, 0.5 * (ranks[0] + ranks[1]), 1e-6 * rank.value);
    EXPECT_NEAR(rank.stderr_, 0.5 * std::fabs(ranks[0] - ranks[1]), 1e-6 * rank.value);
    EXPECT_EQ(rank.n, 1);
    EXPECT_NEAR(whole.total("mixing_rows256", h).value, 0.5 * (mixing[0] + mixing[1]), 1e-6 * mixing[0]);
    EXPECT_FALSE(whole.has("effective_rank", 0, h));
  }
  for (const auto& [key, value] : whole.values)
    EXPECT_NEAR(tiled.values.at(key).value, value.value, 1e-12 * value.value) << std::get<0>(key);
  EXPECT_NEAR(whole.of("mixing_uniform"), tiled.of("mixing_uniform"), 0);
}

TEST(PatternSpectra, SampledRowsOfUniformAttentionScaleToTheWhole) {
  const Collected got = see_patterns("pattern_spectra", {at::full({1, 640, 640}, 1.0f / 640)}, {});
  EXPECT_NEAR(got.total("spectral_gap_rows256", 0).value, 1, 1e-6);  // sigma_1 of the whole is 1
  EXPECT_NEAR(got.total("stable_rank_rows256", 0).value, 1, 1e-12);
  EXPECT_NEAR(got.total("mixing_rows256", 0).value, 0, 1e-13);
}

// The most that the kind of attention allows, whole, in tiles and for rows that are only sampled; softmax has
// no such law.
TEST(PatternSpectraCeiling, StandsBesideTheRankWhereTheKindHasALaw) {
  at::manual_seed(3);
  ModelSpec spec;
  AttentionSpec attention{.variant = "fastmax:p=2", .heads = 2, .kv_heads = 2, .d_qk = 3, .d_v = 3};
  spec.blocks.push_back(classic_block(NormPlace::pre, {}, attention, ""));
  const auto see = [&](int64_t tokens, int64_t rows) {
    const Packed packed({tokens});
    const Packing packing = packed.packing();
    Seeing seeing(lens_named("pattern_spectra"), {spec, 0, 17, 0, 0.3});
    const at::Tensor p = random_pattern(2, tokens, {}).unsqueeze(0);
    for (int64_t first = 0; first < tokens; first += rows) {
      const at::Tensor tile = p.narrow(2, first, std::min(rows, tokens - first)).clone();
      seeing.tile({tile, {0, first, tokens}, false, 0, packing});
    }
    return seeing.finish();
  };
  for (const int64_t rows : {40, 7})
    EXPECT_EQ(see(40, rows).of("rank_ceiling", 0, 1), 10) << rows;  // C(5, 2)
  EXPECT_EQ(see(6, 6).of("rank_ceiling", 0, 0), 6);
  EXPECT_EQ(see(600, 128).of("rank_ceiling", 0, 0), 10);
  spec.blocks.front().attention().variant = "softmax";
  EXPECT_FALSE(see(40, 40).has("rank_ceiling", 0, 0));
}

}  // namespace
}  // namespace rankscope::testing
