#include "studies/study.h"

#include <gtest/gtest.h>

#include "base/test_support.h"
#include "sweep/fake_runner.h"

namespace rankscope::test {
namespace {

constexpr const char* kStudy = R"(title = "Ranks"
question = "Does it matter?"
runner = "fake"
[fixed]
d = 16
heads = 1
[grid]
norm = ["none", "unit"]
points = [{rank = 1, heads = 16}, {rank = 8, heads = 2}]
[protocol]
steps = 3
seeds = 2
)";

// heads stands in [fixed] and in the points above: see SetTwice.
std::string without_fixed_heads() {
  std::string text = kStudy;
  return text.erase(text.find("heads = 1\n"), 10);
}

Study study(const std::string& text) { return parse_study(text, "ranks", "ranks.toml"); }

std::vector<std::string> written_points(const std::vector<Axis>& overrides = {}) {
  std::vector<std::string> out;
  for (const Trial& t : trials(study(without_fixed_heads()), fake_runner(), overrides))
    out.push_back(fmt::format("{} r{} h{} s{}", text(t.config, "norm"), integer(t.config, "rank"),
                              integer(t.config, "heads"), integer(t.config, "seed")));
  return out;
}

Axis given(const char* text) { return parse_override(text, fake_runner().keys); }

TEST(Study, TheGridTurnsItsLastAxisFastestAndSeedsLast) {
  EXPECT_EQ(written_points(),
            (std::vector<std::string>{"none r1 h16 s0", "none r1 h16 s1", "none r8 h2 s0", "none r8 h2 s1",
                                      "unit r1 h16 s0", "unit r1 h16 s1", "unit r8 h2 s0", "unit r8 h2 s1"}));
}

TEST(Study, AGridInOneLineHasTheOrderInWhichItIsWritten) {
  const Study s = study("runner = \"fake\"\ngrid = { steps = [3, 5], rank = [1, 2], d = [16, 8] }\n");
  std::vector<std::string> names;
  for (const Axis& axis : s.grid) names.push_back(axis.names.front());
  EXPECT_EQ(names, (std::vector<std::string>{"steps", "rank", "d"}));
}

TEST(Study, AnOverridePicksCoupledPointsOrReplacesTheirValue) {
  EXPECT_EQ(written_points({given("rank=8"), given("norm=unit"), given("seed=5")}),
            (std::vector<std::string>{"unit r8 h2 s5"}));
  EXPECT_EQ(written_points({given("rank=8,4"), given("norm=unit"), given("seed=5")}),
            (std::vector<std::string>{"unit r8 h2 s5", "unit r4 h16 s5", "unit r4 h2 s5"}));
}

TEST(Study, OneOfMoreThanAMebibyteIsNotRead) {
  const Error error = error_of([] { study(kStudy + std::string(1 << 20, '#')); });
  EXPECT_EQ(error.message(), fmt::format("a study has 1048576 bytes at most, but this one {}",
                                         std::string_view(kStudy).size() + (1 << 20)));
}

TEST(Study, SaysItselfInOneLine) {
  EXPECT_EQ(spec_text(study(without_fixed_heads()), {given("norm=unit"), given("lr=1e-3")}),
            "fake d=16 steps=3 norm=unit {rank,heads}={1,16},{8,2} seed=0,1 lr=0.001");
}

TEST(Study, AnImpossiblePointIsRefusedByName) {
  const Error e = error_of([] { written_points({given("rank=3"), given("norm=unit")}); });
  EXPECT_EQ(
      e.render(),
      "error: norm=unit rank=3 heads=16 seed=0: the rank 3 does not divide the width 16\n  in   study ranks\n"
      "  try  a rank that divides it\n");
  EXPECT_EQ(e.kind(), ErrorKind::usage);
}

TEST(Study, AWrongKeyIsNamedWithItsLineAndTheNearestKnown) {
  const auto fault = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return error_of([&] { trials(study(text), fake_runner(), {}); }).render();
  };
  EXPECT_EQ(fault(kStudy, "[grid]", "[gird]"),
            "error: there is no key \"gird\"\n  in   ranks.toml, line 7\n  try  grid, fixed, title\n");
  EXPECT_EQ(fault(without_fixed_heads(), "steps = 3", "step = 3"),
            "error: there is no key \"step\"\n  in   ranks.toml, line 10\n  try  steps, seed, d"
            "   (rankscope study keys RUNNER shows all 10)\n");
  EXPECT_EQ(fault(without_fixed_heads(), "norm = [", "nrom = ["),
            "error: there is no key \"nrom\"\n  in   ranks.toml, line 7\n  try  norm, lr, d"
            "   (rankscope study keys RUNNER shows all 10)\n");
  EXPECT_EQ(
      fault(without_fixed_heads(), "\"none\", \"unit\"", "\"none\", \"uint\""),
      "error: norm: expected one of none, unit, but got uint\n  in   ranks.toml, line 7\n  try  unit\n");
  EXPECT_EQ(fault(without_fixed_heads(), "seeds = 2", "seeds = 0"),
            "error: seeds: expected a whole number from 1 to 10000\n  in   ranks.toml, line 11\n");
  EXPECT_EQ(fault(without_fixed_heads(), "heads = 2}", "head = 2}"),
            "error: this point of points has no \"heads\"\n  in   ranks.toml, line 8\n");
}

TEST(Study, AKeySetTwiceIsRefused) {
  EXPECT_EQ(error_of([] { study(kStudy); }).render(),
            "error: \"heads\" is set twice: in line 6 and in line 9\n  in   ranks.toml\n");
}

TEST(Study, BrokenTomlIsNamedWithItsLine) {
  EXPECT_EQ(error_of([] { study("title = \"x\"\nrunner = \n"); }).place(), "ranks.toml, line 2");
  EXPECT_EQ(error_of([] { study("title = \"x\"\n"); }).message(), "the study names no runner");
}

TEST(Study, FilesThatTomlPlusPlusAssertsOnAreRefusedToo) {
  for (const char* text : {"[[[", "[[[[", "[[[a]]]"}) {
    const Error error = error_of([&] { parse_study(text, "mine", "mine.toml"); });
    EXPECT_EQ(error.place().substr(0, 9), "mine.toml") << text;
  }
}

TEST(Study, PublishedTablesMayBeWideAndHaveHoles) {
  const Study s = study(std::string(kStudy).erase(std::string(kStudy).find("heads = 1\n"), 10) + R"(
[published]
budget = "100,000 steps"
columns = ["norm"]
across = "rank"
values = [1, 8]
rows = [["none", 0.5, nan], ["unit", 1, 0.25]]
)");
  ASSERT_EQ(s.published.size(), 1u);
  EXPECT_EQ(s.published[0].columns, (std::vector<std::string>{"norm", "rank"}));
  ASSERT_EQ(s.published[0].rows.size(), 3u);
  EXPECT_EQ(to_text(s.published[0].rows[2].point[1]), "8");
  EXPECT_EQ(s.published[0].rows[2].value, 0.25);
}

TEST(Study, TwoValuesForOnePointAreRefused) {
  const auto fault = [](const std::string& rows) {
    return error_of([&] { study(without_fixed_heads() + "[published]\n" + rows); }).message();
  };
  EXPECT_EQ(fault("columns = [\"rank\"]\nrows = [[1, 0.3], [8, 0.2], [1, 0.9]]\n"), "two values for rank=1");
  EXPECT_EQ(
      fault("columns = [\"norm\"]\nacross = \"rank\"\nvalues = [1, 1]\nrows = [[\"none\", 0.3, 0.9]]\n"),
      "two values for norm=none rank=1");
  EXPECT_EQ(fault("rows = [[0.5], [0.25]]\n"), "two values for every point");
}

TEST(Study, KeysOfFiguresAndTablesAreKeysOfTrials) {
  const auto fault = [](const std::string& more) {
    return error_of([&] { trials(study(without_fixed_heads() + more), fake_runner(), {}); }).render();
  };
  EXPECT_EQ(fault("[figure]\nx = \"rnak\"\n"),
            "error: there is no key \"rnak\"\n  in   ranks.toml, x of [figure]\n  try  rank, bias, d"
            "   (rankscope study keys RUNNER shows all 10)\n");
  EXPECT_EQ(fault("[figure]\nx = \"rank\"\nby = [\"nrom\"]\n"),
            "error: there is no key \"nrom\"\n  in   ranks.toml, by of [figure]\n  try  norm, lr, d"
            "   (rankscope study keys RUNNER shows all 10)\n");
  EXPECT_EQ(fault("[reference]\ncolumns = [\"rnak\"]\nrows = [[1, 0.3]]\n"),
            "error: there is no key \"rnak\"\n  in   ranks.toml, columns of [reference]\n  try  rank, bias, d"
            "   (rankscope study keys RUNNER shows all 10)\n");
}

// No trial could stand beside such a value, and nobody would be told.
TEST(Study, CellsOfATableAreValuesOfTheirKeys) {
  const auto fault = [](const std::string& rows) {
    return error_of([&] { trials(study(without_fixed_heads() + rows), fake_runner(), {}); }).render();
  };
  EXPECT_NO_THROW(
      trials(study(without_fixed_heads() + "[published]\ncolumns = [\"rank\"]\nrows = [[1.0, 0.3]]\n"),
             fake_runner(), {}));
  EXPECT_EQ(fault("[published]\ncolumns = [\"rank\"]\nrows = [[1, 0.3],\n[\"a\", 0.2]]\n"),
            "error: rank: expected a whole number, but got a\n  in   ranks.toml, line 15\n");
  EXPECT_EQ(fault("[reference]\ncolumns = [\"norm\"]\nacross = \"rank\"\nvalues = [true]\n"
                  "rows = [[\"none\", 0.3]]\n"),
            "error: rank: expected a whole number, but got true\n  in   ranks.toml, line 16\n");
}

TEST(Study, KeysThatVaryTogetherAreAtLeastOne) {
  EXPECT_EQ(error_of([] { study("runner = \"fake\"\n[grid]\npoints = [{}]\n"); }).render(),
            "error: points: expected tables with keys and their values\n  in   ranks.toml, line 3\n");
}

// Before anything is trained: a note behind hours of training comes too late.
TEST(Study, ResultsOfFiguresAndTablesAreResultsOfTheRunner) {
  Runner runner = fake_runner();
  const auto fault = [&](const std::string& more) {
    return error_of([&] { trials(study(without_fixed_heads() + more), runner, {}); }).render();
  };
  const std::string figure = "[figure]\nx = \"rank\"\n";
  EXPECT_NO_THROW(
      trials(study(without_fixed_heads() + figure + "y = \"nope\"\n"), runner, {}));  // no register
  runner.results = {"test_mse", "lower_bound", "floor"};
  EXPECT_NO_THROW(trials(
      study(without_fixed_heads() + figure + "bound = \"lower_bound\"\nlines = [\"floor\"]\n"), runner, {}));
  EXPECT_EQ(fault(figure + "y = \"tset_mse\"\n"),
            "error: there is no result \"tset_mse\"\n  in   ranks.toml, y of [figure]\n"
            "  try  test_mse, floor, lower_bound   (rankscope study keys fake shows all 3)\n");
  EXPECT_EQ(fault(figure + "bound = \"lower_bond\"\n"),
            "error: there is no result \"lower_bond\"\n  in   ranks.toml, bound of [figure]\n"
            "  try  lower_bound, floor, test_mse   (rankscope study keys fake shows all 3)\n");
  EXPECT_EQ(fault(figure + "lines = [\"floor\", \"flor\"]\n"),
            "error: there is no result \"flor\"\n  in   ranks.toml, lines of [figure]\n"
            "  try  floor, test_mse, lower_bound   (rankscope study keys fake shows all 3)\n");
  EXPECT_EQ(fault("[reference]\nmetric = \"nope\"\nrows = [[0.3]]\n"),
            "error: there is no result \"nope\"\n  in   ranks.toml, metric of [reference]\n"
            "  try  floor, test_mse, lower_bound   (rankscope study keys fake shows all 3)\n");
  runner.results = {"mse"};  // a study without a figure has not asked for the usual y
  EXPECT_NO_THROW(trials(study(without_fixed_heads()), runner, {}));
  EXPECT_EQ(error_of([&] { trials(study(without_fixed_heads() + figure), runner, {}); }).place(),
            "ranks.toml, y of [figure]");
}

TEST(Study, NumbersThatNoPaperPrintedAreReferences) {
  const Study s = study(without_fixed_heads() + R"(
[[published]]
rows = [[0.5]]
[[reference]]
source = "a plain program"
rows = [[0.25]]
)");
  ASSERT_EQ(s.published.size(), 2u);
  EXPECT_STREQ(s.published[0].kind(), "published");
  EXPECT_STREQ(s.published[1].kind(), "reference");
  // The built-in ones call a number published only where its source is a paper or a figure of one.
  for (const std::string& name : builtin_studies())
    for (const Published& p : load_study(name).published)
      if (p.printed) {
        for (const char* words : {"not in the paper", "unpublished", "before this program", "plain program"})
          EXPECT_EQ(p.source.find(words), std::string::npos) << name << ": " << p.source;
      }
}

TEST(Study, EveryBuiltInStudySaysWhatItAsksAndWhereItsNumbersComeFrom) {
  for (const std::string& name : builtin_studies()) {
    const Study s = load_study(name);
    EXPECT_FALSE(s.title.empty() || s.question.empty() || s.runner.empty()) << name;
    EXPECT_FALSE(s.figure.x.empty()) << name;
    for (const Published& p : s.published) {
      EXPECT_FALSE(p.budget.empty() || p.source.empty() || p.rows.empty()) << name;
    }
  }
}

TEST(Study, AnUnknownNameIsAnsweredWithTheNearest) {
  const Error e = error_of([] { load_study("quikc"); });
  EXPECT_EQ(e.message(), "there is no study \"quikc\"");
  EXPECT_TRUE(e.advice().starts_with("quick")) << e.advice();
}

TEST(Study, AFileNeedsANameThatCanBePrinted) {
  const TempFolder folder;
  const auto file = folder / "a\x1b[31m.toml";
  put(file, "runner = \"train\"\n");
  EXPECT_EQ(error_of([&] { load_study(file.string()); }).message(),
            "a study is called as its file, and this is no name");
}

}  // namespace
}  // namespace rankscope::test
