#include "report/diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/stats.h"

namespace rankscope {
namespace {

SavedResults scan(const std::string& name, const std::vector<double>& values, double weight) {
  SavedResults r;
  r.name = name;
  r.manifest = {{"input", {{"ids", "sha256:1"}}}, {"metrics", {{"residual", {{"mean", "geometric"}}}}}};
  for (const char* metric : {"cosine", "residual"}) {
    const Estimate e = metric == std::string("residual") ? geometric_mean(values) : arithmetic_mean(values);
    r.table.rows.push_back(
        {"full", "blocks.0.hook_resid_post", 0, -1, metric, e.value, e.stderr_, 4, 1, "all"});
    for (size_t i = 0; i < values.size(); ++i)
      r.table.samples.push_back({"full",
                                 "blocks.0.hook_resid_post",
                                 0,
                                 -1,
                                 metric,
                                 "all",
                                 static_cast<int64_t>(i),
                                 values[i],
                                 {},
                                 1});
  }
  r.table.rows.push_back({"full", "blocks.0.attn", 0, 2, "qk_effective_rank", weight, kNone, 1, 0, "all"});
  return r;
}

const Change& of(const ScanDiff& diff, std::string_view metric) {
  for (const Change& c : diff.changes)
    if (c.metric.str() == metric) return c;
  throw std::runtime_error(std::string(metric));
}

TEST(Diff, ErrorsArePaired) {
  // Samples differ wildly among themselves and by nearly the same amount between the scans.
  const std::vector<double> a{1, 5, 2, 9}, b{1.1, 5.12, 2.09, 9.11};
  const ScanDiff diff = compare(scan("a", a, 8), scan("b", b, 6));
  std::vector<double> d;
  for (size_t i = 0; i < a.size(); ++i) d.push_back(b[i] - a[i]);
  const Change& c = of(diff, "cosine");
  EXPECT_DOUBLE_EQ(c.delta, arithmetic_mean(b).value - arithmetic_mean(a).value);
  EXPECT_DOUBLE_EQ(c.stderr_, arithmetic_mean(d).stderr_);
  EXPECT_EQ(c.n, 4);
  EXPECT_LT(c.stderr_, arithmetic_mean(a).stderr_ / 100);
}

TEST(Diff, IdenticalScansAreCalledSoAndOneDigitIsEnoughToDiffer) {
  const auto said = [](const ScanDiff& diff) {
    std::ostringstream out;
    print_diff(diff, 3, {}, out);
    return out.str();
  };
  SavedResults a = scan("a", {1, 5, 2, 9}, 8), b = a;
  for (SavedResults* r : {&a, &b}) {
    r->table.rows.push_back(
        {"full", "blocks.0.attn.hook_pattern", 0, 1, "sink_position", 3, kNone, 4, 1, "all"});
    r->table.rows.push_back(
        {"full", "blocks.0.hook_resid_post", 0, -1, "entropy", kNone, kNone, 4, 1, "all"});
  }
  EXPECT_EQ(said(compare(a, b)),
            "a -> a: 3 rows compared pair by pair\nthey are identical: every number is the same\n");
  for (size_t row = 0; row < b.table.rows.size(); ++row) {
    SavedResults other = b;
    other.table.rows[row].value = 2;
    EXPECT_EQ(said(compare(a, other)).find("identical"), std::string::npos) << row;
  }
  b.table.rows.pop_back();
  EXPECT_EQ(said(compare(a, b)).find("identical"), std::string::npos);
}

TEST(Diff, GeometricMeansKeepTheirOwnError) {
  // Every sample a tenth larger: the geometric mean is, too, and there is nothing to be unsure about.
  const std::vector<double> a{1, 5, 2, 9}, b{1.1, 5.5, 2.2, 9.9};
  const Change c = of(compare(scan("a", a, 8), scan("b", b, 8)), "residual");
  EXPECT_NEAR(c.b / c.a, 1.1, 1e-15);
  EXPECT_LT(c.stderr_, 1e-15);
  // Ratios of 1, 2, 1 and 2: their logarithm is (1 +- 1 / sqrt(3)) log(2) / 2, and b - a that many errors.
  const Change other = of(compare(scan("a", a, 8), scan("b", {1, 10, 2, 18}, 8)), "residual");
  EXPECT_NEAR(other.b / other.a, std::sqrt(2.0), 1e-15);
  EXPECT_NEAR(other.delta / other.stderr_, std::sqrt(3.0), 1e-14);
}

TEST(Diff, ASampleOfZeroInBothScansHidesNoChangeOfTheOthers) {
  const std::vector<double> a{1, 5, 2, 9, 3}, b{2, 10.1, 4, 18, 6.1};
  std::vector<double> a_and_zero = a, b_and_zero = b;
  a_and_zero.push_back(0), b_and_zero.push_back(0);
  const Change alone = of(compare(scan("a", a, 8), scan("b", b, 8)), "residual"),
               with = of(compare(scan("a", a_and_zero, 8), scan("b", b_and_zero, 8)), "residual");
  EXPECT_GT(alone.errors(), 100);
  EXPECT_GT(with.errors(), 100);
}

TEST(Diff, ASampleThatOneScanHasNoValueForIsLeftOutOfBoth) {
  // NaN for the last sample: the difference of the rows would be that of two means over different samples.
  const SavedResults a = scan("a", {1, 1, 1, 100}, 8), b = scan("b", {1.1, 1, 1.05}, 8);
  const ScanDiff diff = compare(a, b), back = compare(b, a);
  for (const char* metric : {"cosine", "residual"}) {
    const Change &c = of(diff, metric), &d = of(back, metric);
    EXPECT_DOUBLE_EQ(c.a, 1) << metric;
    EXPECT_NEAR(c.b, metric == std::string("cosine") ? 3.15 / 3 : std::cbrt(1.1 * 1.05), 1e-15) << metric;
    EXPECT_EQ(c.delta, c.b - c.a) << metric;
    EXPECT_EQ(c.n, 3) << metric;
    EXPECT_EQ(c.unpaired, 1) << metric;
    EXPECT_LT(c.errors(), 2) << metric;  // nothing is clear here
    EXPECT_EQ(d.delta, -c.delta) << metric;
  }
  std::ostringstream out;
  print_diff(compare(scan("a", {1, 2, 1, 100}, 8), scan("b", {3, 4, 3.1}, 8)), 1, {}, out);
  EXPECT_NE(out.str().find("      of the 3 samples for which both are defined\n"), std::string::npos)
      << out.str();
  EXPECT_EQ(compare(scan("a", {}, 8), b).changes.size(), 1u);  // no value at all: nothing to compare
}

TEST(Diff, TheSurestChangeComesFirstAndWeightsBehindWhatIsClear) {
  const ScanDiff diff = compare(scan("a", {1, 5, 2, 9}, 8), scan("b", {1.1, 5.12, 2.09, 9.11}, 6));
  ASSERT_EQ(diff.changes.size(), 3u);
  EXPECT_GE(diff.changes[0].errors(), 2);
  EXPECT_TRUE(std::isfinite(diff.changes[0].errors()));
  const Change& last =
      diff.changes[diff.changes[1].errors() >= 2 && std::isfinite(diff.changes[1].errors()) ? 2 : 1];
  EXPECT_EQ(last.metric,
            "qk_effective_rank");  // a change of 2/7, larger than the others, but no samples behind it
  EXPECT_TRUE(std::isinf(last.errors()));
  EXPECT_DOUBLE_EQ(last.relative(), 2.0 / 7.0);
}

TEST(Diff, WhatAnotherOrderOfSumsLeavesIsSureAndNoClearChange) {
  // Every sample a millionth larger, which is no noise: rounding does so, the same way in each.
  const std::vector<double> a{1, 5, 2, 9};
  std::vector<double> rounded, grown;
  for (const double x : a) rounded.push_back(x * (1 + 1e-6)), grown.push_back(x * (1 + 1e-3));
  const auto said = [&](const std::vector<double>& b) {
    std::ostringstream out;
    print_diff(compare(scan("a", a, 8), scan("b", b, 8)), 3, {.width = 400}, out);
    return out.str();
  };
  EXPECT_GT(of(compare(scan("a", a, 8), scan("b", rounded, 8)), "residual").errors(), 1e6);
  EXPECT_NE(said(rounded).find("layers: 0 clear changes"), std::string::npos) << said(rounded);
  EXPECT_NE(
      said(rounded).find("; 2 more changed surely, but by less than 0.0001 of their size, as rounding does"),
      std::string::npos)
      << said(rounded);
  EXPECT_NE(said(grown).find("layers: 2 clear changes"), std::string::npos) << said(grown);
  EXPECT_EQ(said(grown).find("more changed surely"), std::string::npos) << said(grown);
}

TEST(Diff, SurenessComparesChangesOfDifferentNumbersOfPairs) {
  Change two, twelve;
  two.delta = 61.3, two.stderr_ = 1, two.n = 2;  // P(|t| > 61.3) = 0.0104 with one degree of freedom
  twelve.delta = 45.4, twelve.stderr_ = 1, twelve.n = 12;  // about 1e-13 with eleven
  EXPECT_GT(two.errors(), twelve.errors());
  EXPECT_LT(two.sureness(), twelve.sureness());
  EXPECT_NEAR(two.sureness(), 2.56, 0.25);  // that of 0.0104; one degree of freedom is the worst case
  two.n = 1'000'000;
  two.delta = 3;
  EXPECT_NEAR(two.sureness(), 3, 1e-4);
}

TEST(Diff, SaysHowManyComparisonsWereMadeAndWhatChanceWouldGive) {
  const ScanDiff diff = compare(scan("a", {1, 5, 2, 9}, 8), scan("b", {1.1, 5.12, 2.09, 9.11}, 6));
  EXPECT_EQ(diff.comparisons, 2u);
  // Student's t with 3 degrees of freedom: P(|t| >= 2) = 1 - (2 / pi) (x + sin x cos x), x = atan(2 / sqrt
  // 3).
  const double x = std::atan(2 / std::sqrt(3.0));
  EXPECT_NEAR(diff.expected_by_chance, 2 * (1 - 2 / M_PI * (x + std::sin(x) * std::cos(x))), 1e-14);
  EXPECT_NEAR(diff.expected_by_chance / 2, 0.1393, 1e-4);  // as tables have it
  // Two degrees: 1 - 2 / sqrt(6); thirty-one: 0.0543 in tables.
  EXPECT_NEAR(compare(scan("a", {1, 5, 2}, 8), scan("b", {1.1, 5.12, 2.09}, 8)).expected_by_chance / 2,
              1 - 2 / std::sqrt(6.0), 1e-14);
  const std::vector<double> many(32, 1.0), more(32, 1.5);
  EXPECT_NEAR(compare(scan("a", many, 8), scan("b", more, 8)).expected_by_chance / 2, 0.0543, 1e-4);
  EXPECT_EQ(compare(scan("a", many, 8), scan("b", many, 8)).expected_by_chance, 0);  // equal to the bit
}

TEST(Diff, NumbersOfAllSamplesTogetherAreCountedAndNeverClear) {
  SavedResults a = scan("a", {1, 5}, 8), b = a;
  for (SavedResults* r : {&a, &b}) {
    const double x = r == &a ? 1 : 2;
    r->table.rows.push_back({"full", "unembed.hook_out", -1, -1, "perplexity", 400 + x, 5, 4, 1, "all"});
    r->table.rows.push_back({"full", "blocks.0.mlp.hook_pre", 0, -1, "spread", x, 0.01, 4, 1, "all"});
  }
  const ScanDiff diff = compare(a, b);
  EXPECT_EQ(diff.untested, 1u);  // spread; what perplexity says nll does
  EXPECT_EQ(diff.changes.size(), 3u);
  std::ostringstream out;
  print_diff(diff, 3, {.width = 400}, out);
  EXPECT_NE(out.str().find("layers: 0 clear changes"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("; 1 number of all samples together"), std::string::npos) << out.str();
}

TEST(Diff, PlacesAreNamedAndNeverRanked) {
  SavedResults a = scan("a", {1, 2}, 8), b = scan("b", {1, 2}, 8);
  a.table.rows.push_back({"full", "blocks.0.attn", 0, 1, "sink_position", 0, kNone, 2, 0, "all"});
  b.table.rows.push_back({"full", "blocks.0.attn", 0, 1, "sink_position", 17, kNone, 2, 0, "all"});
  const ScanDiff diff = compare(a, b);
  EXPECT_EQ(diff.moved, 1u);
  EXPECT_THROW(of(diff, "sink_position"), std::runtime_error);
}

TEST(Diff, RowsWithoutAPartnerAreCounted) {
  SavedResults a = scan("a", {1, 2}, 8), b = scan("b", {1, 2}, 8);
  a.table.rows.push_back({"-skip", "x", 0, -1, "m", 1, kNone, 1, 0, "all"});
  const ScanDiff diff = compare(a, b);
  EXPECT_EQ(diff.only_a, 1u);
  EXPECT_EQ(diff.only_b, 0u);
  EXPECT_EQ(diff.changes.size(), 3u);
}

TEST(Diff, PathsArePairedByTheirLength) {
  SavedResults a = scan("a", {1, 2}, 8), b = scan("b", {1, 2}, 8);
  for (SavedResults* r : {&a, &b})
    for (const int32_t length : {0, 1, 2}) {
      const double share = (r == &a ? 0.1 : 0.2) * (length + 1);
      r->table.rows.push_back({"full", "ln_final", -1, -1, "path_share", share, kNone, 1, length, "all"});
      r->table.samples.push_back(
          {"full", "ln_final", -1, -1, "path_share", "all", 0, share, {}, kDepthNotSaid});
    }
  std::vector<double> deltas;
  for (const Change& c : compare(a, b).changes)
    if (c.metric == "path_share") {
      deltas.push_back(c.delta);
      EXPECT_EQ(c.errors(), 0);  // one sample: not known to be a change
    }
  std::sort(deltas.begin(), deltas.end());
  ASSERT_EQ(deltas.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(deltas[i], 0.1 * static_cast<double>(i + 1));
}

TEST(Diff, RowsThatDifferInDepthAloneHaveErrorsOfTheirOwn) {
  SavedResults a = scan("a", {1, 2}, 8), b = scan("b", {1, 2}, 8);
  for (SavedResults* r : {&a, &b})
    for (const int32_t rank : {1, 2}) {
      r->table.rows.push_back({"full", "x", 0, 1, "rank_qk_estimate_kl", 0, kNone, 2, rank, "all"});
      for (const int64_t sample : {0, 1}) {
        const double value = static_cast<double>(rank + sample * (r == &b ? rank : 0));
        r->table.samples.push_back(
            {"full", "x", 0, 1, "rank_qk_estimate_kl", "all", sample, value, {}, rank});
      }
    }
  std::vector<double> errors;
  for (const Change& c : compare(a, b).changes)
    if (c.metric == "rank_qk_estimate_kl") errors.push_back(c.stderr_);
  std::sort(errors.begin(), errors.end());
  EXPECT_EQ(errors, (std::vector<double>{0.5, 1.0}));  // differences 0, rank: half of the rank
}

TEST(Diff, RowsOfDifferentStreamsAreNotPaired) {
  SavedResults a = scan("a", {1, 2}, 8), b = scan("b", {1, 2}, 8);
  a.table.rows.push_back({"full", "x", 0, -1, "m", 1, kNone, 1, 0, "all", "encoder"});
  b.table.rows.push_back({"full", "x", 0, -1, "m", 7, kNone, 1, 0, "all", "decoder"});
  const ScanDiff diff = compare(a, b);
  EXPECT_EQ(diff.only_a, 1u);
  EXPECT_EQ(diff.only_b, 1u);
}

TEST(Diff, OtherVersionsOfAMetricAreToldWhereItIsCompared) {
  SavedResults a = scan("a", {1, 2}, 8), b = scan("b", {1, 2}, 8);
  b.manifest["metric_versions"] = {{"cosine", 1}, {"residual", 2}, {"elsewhere", 3}};
  const ScanDiff diff = compare(a, b);  // a is of schema 1, which means version 1
  EXPECT_EQ(diff.notes, std::vector<std::string>{
                            "residual has version 1 in the first and 2 in the second: a bug fix changed "
                            "its numbers, scan both with one program"});
  std::ostringstream out;
  print_diff(diff, 3, {.width = 200}, out);
  EXPECT_NE(out.str().find("note: residual has version 1"), std::string::npos) << out.str();
  a.manifest["metric_versions"] = b.manifest["metric_versions"];
  EXPECT_TRUE(compare(a, b).notes.empty());
  b.manifest["metric_versions"] = {{"residual", "two"}};  // not trusted
  EXPECT_EQ(compare(a, b).notes.size(), 1u);
}

TEST(Diff, OnePairTellsNothingOfItsError) {
  const Change c = of(compare(scan("a", {1}, 8), scan("b", {3}, 8)), "cosine");
  EXPECT_EQ(c.delta, 2);
  EXPECT_EQ(c.errors(), 0);
}

TEST(Diff, DifferentOrUnknownTokensAreRefused) {
  SavedResults a = scan("a", {1, 2}, 8), b = a;
  b.manifest["input"]["ids"] = "sha256:2";
  EXPECT_THROW(compare(a, b), Error);
  EXPECT_FALSE(same_tokens(a, b));
  EXPECT_TRUE(same_tokens(a, a));
  a.manifest["input"]["ids"] = b.manifest["input"]["ids"] = "sha256:";  // built without OpenSSL
  EXPECT_THROW(compare(a, b), Error);
  EXPECT_FALSE(same_tokens(a, b));
}

TEST(Diff, ChangesOfLongNamesAreToldApartByVariantAndPlace) {
  SavedResults a = scan("a", {1, 2}, 8), b = a;
  const std::string variant = "replace:softmax=shifted_control:nats=2,to=random";
  for (const int layer : {3, 4}) {
    const std::string site = "blocks." + std::to_string(layer) + ".ln1.hook_normalized";
    a.table.rows.push_back({variant, site, layer, -1, "effective_rank_rel", 1, kNone, 0, 1, "content"});
    b.table.rows.push_back({variant, site, layer, -1, "effective_rank_rel", 2, kNone, 0, 1, "content"});
  }
  std::ostringstream out;
  print_diff(compare(a, b), 5, {}, out);
  for (const char* place : {"L3 ln1.hook_normalized\n", "L4 ln1.hook_normalized\n"})
    EXPECT_NE(out.str().find("  effective_rank_rel (content) of\n"
                             "      replace:softmax=shifted_control:nats=2,to=random at " +
                             std::string(place)),
              std::string::npos)
        << out.str();
}

TEST(Diff, PrintsWithinTheWidth) {
  std::ostringstream out;
  print_diff(compare(scan("a", {1, 5, 2, 9}, 8), scan("b", {1.1, 5.12, 2.09, 9.11}, 6)), 5, {}, out);
  EXPECT_NE(out.str().find("L0H2"), std::string::npos);
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 84u) << line;  // ± is two bytes
}

}  // namespace
}  // namespace rankscope
