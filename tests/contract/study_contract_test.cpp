// Every built-in study fits its runner: its keys are known, its points possible, its published columns among
// them.
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "studies/study.h"
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

INSTANTIATE_TEST_SUITE_P(All, StudyContract, testing::ValuesIn(builtin_studies()), [](const auto& study) {
  std::string name = study.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace rankscope
