// Every built-in study fits its runner: its keys are known, its points possible, its published columns among
// them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "studies/study.h"
#include "support/source_tree.h"
#include "sweep/gathered.h"
#include "sweep/schedule.h"

namespace rankscope {
namespace {

class StudyContract : public testing::TestWithParam<std::string> {};

TEST_P(StudyContract, EveryPointOfTheGridIsPossible) {
  const Study study = load_study(GetParam());
  const Runner& runner = find_runner(runners(), study.runner, study.place);
  const std::vector<Trial> all = trials(study, runner, {});
  EXPECT_FALSE(all.empty());
  std::set<std::string> ids;
  for (const Trial& trial : all) {
    EXPECT_TRUE(ids.insert(trial.id).second);
    EXPECT_GT(stack_flops(runner, {{trial.id, trial.config, {}}}), 0);
    EXPECT_EQ(parse_canonical(canonical(trial.config), runner.keys), trial.config);
  }
}

TEST_P(StudyContract, ItsFigureAndItsPublishedColumnsAreKeysOfTheRunner) {
  const Study study = load_study(GetParam());
  const Runner& runner = find_runner(runners(), study.runner, study.place);
  std::vector<std::string> names = study.figure.by;
  names.push_back(study.figure.x);
  for (const Published& table : study.published)
    names.insert(names.end(), table.columns.begin(), table.columns.end());
  for (const std::string& name : names) EXPECT_NO_THROW(find_key(runner.keys, name, study.place)) << name;
}

// Golden record: how many trials a study has and a hash (FNV-1a) of their ids, one behind another. Stores
// that people have keep their trials only as long as these stay.
TEST_P(StudyContract, ItsTrialsKeepTheirNames) {
  static const std::map<std::string, std::pair<size_t, uint64_t>> known{
      {"circle", {288, 0xc601e67b0148fc53}},
      {"compose", {102, 0x960a326dbd775a9a}},
      {"compose-trained", {18, 0xc207cb46c23dcbe4}},
      {"explained-away", {120, 0xaa0df2c1edac445c}},
      {"fastmax", {60, 0xcc696fe36eb8ca80}},
      {"feature-representation", {114, 0xdd9c9c0bbb7c19fe}},
      {"fig1", {189, 0x2077b452a7dfd819}},
      {"figN", {60, 0x0842774d86a719dc}},
      {"fig_d", {60, 0xc9fbb361102c965d}},
      {"gates", {27, 0xd4a847fb5886ec30}},
      {"gate-samples", {30, 0x135e15550e56e576}},
      {"heads-mixed", {21, 0x49d01471243d71a8}},
      {"hull", {147, 0x2a9026098f846cdf}},
      {"hull-depth", {243, 0x9842f9be91e391e9}},
      {"hybrid-share", {24, 0x6022e5c9332cce54}},
      {"in-context-regression", {21, 0x31c16afd6792752a}},
      {"layernorm-history", {84, 0x45b71de396123f93}},
      {"many-points", {45, 0x6bdf778d8b7614fe}},
      {"memorise", {294, 0xc366aff77c78a39e}},
      {"mlp-gain", {315, 0xf9f18916eefa4306}},
      {"n2-trained", {90, 0x688d1dc0fb804bd3}},
      {"norm-keeps", {336, 0x5360a47fbb543ce6}},
      {"perfect", {9, 0xcfeeab95ed379825}},
      {"positions", {126, 0x4505d903df50ae98}},
      {"quick", {15, 0x6c12767024ae867a}},
      {"random-features", {420, 0x17e813faa9c7c4f3}},
      {"recall", {252, 0xb1673aca2a4c0585}},
      {"sinks", {385, 0xea06873cc9b3527c}},
      {"skip-scales", {780, 0x11e4c38ef60669c0}},
      {"sort", {147, 0x559e1eab449b9129}},
      {"square-wave", {12, 0x0f6395fcd28a13bf}},
      {"variants", {1224, 0x04e8674a234eda5f}},
      {"vote", {13, 0x6b789800d4e7fc56}},
      {"warm-start", {45, 0xd2675dcf12071748}}};
  const Study study = load_study(GetParam());
  const std::vector<Trial> all = trials(study, find_runner(runners(), study.runner, study.place), {});
  uint64_t hash = 0xcbf29ce484222325;
  for (const Trial& trial : all)
    for (const char c : trial.id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  ASSERT_TRUE(known.contains(GetParam()))
      << fmt::format("a new study: add {{\"{}\", {{{}, {:#018x}}}}} above", GetParam(), all.size(), hash);
  EXPECT_EQ(all.size(), known.at(GetParam()).first);
  EXPECT_EQ(hash, known.at(GetParam()).second);
}

// What is not listed no figure and no table may ask for.
TEST(RunnerContract, EveryRunnerListsItsResultsOnce) {
  for (const Runner* runner : runners()) {
    EXPECT_FALSE(runner->results.empty()) << runner->name;
    const std::set<std::string> once(runner->results.begin(), runner->results.end());
    EXPECT_EQ(once.size(), runner->results.size()) << runner->name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, StudyContract, testing::ValuesIn(builtin_studies()), [](const auto& study) {
  std::string name = study.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

// Golden record: rows that are kept are what their settings say, since an id is a hash of these, and numbers
// that were finished.
TEST(KeptResults, HaveRowsWhoseSettingsGiveTheirIds) {
  size_t folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_tree() / "src/studies/results")) {
    if (!std::filesystem::exists(entry.path() / "study.json")) continue;
    ++folders;
    const Gathered kept = gather(std::vector{entry.path()}, runners());
    EXPECT_FALSE(kept.trials.empty()) << entry.path();
    const std::string place = entry.path().string();
    const Runner& runner = find_runner(runners(), kept.study.runner, place);
    std::set<std::string> unknown;  // of results that the runner does not list
    for (const StoredTrial& trial : kept.trials) {
      EXPECT_EQ(trial.state, TrialState::done) << entry.path() << " " << trial.id;
      for (const auto& [name, value] : trial.values)
        if (std::find(runner.results.begin(), runner.results.end(), name) == runner.results.end())
          unknown.insert(name);
    }
    EXPECT_EQ(unknown, std::set<std::string>()) << entry.path();
  }
  EXPECT_GE(folders, 37u);
}

}  // namespace
}  // namespace rankscope
