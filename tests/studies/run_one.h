// One trial of a runner, without a store.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <string>

#include "studies/study.h"

namespace rankscope::test {

/// What is trained is kept in `folder`; a runner that trains nothing needs none.
inline std::map<std::string, double> outcome_of(const Runner& runner, const Config& given,
                                                const std::filesystem::path& folder = {}) {
  const Config config = complete(runner.keys, given, "test");
  runner.check(config);
  const std::vector<TrialJob> jobs{
      {trial_id(runner.name, config), config, folder / trial_id(runner.name, config)}};
  const std::atomic<bool> stop{false};
  RunContext context;
  context.stop = &stop;
  std::map<std::string, double> out;
  context.finished = [&](size_t, const Outcome& outcome) { out = outcome.values; };
  runner.run(jobs, context);
  for (const auto& [name, value] : out)
    EXPECT_EQ(std::count(runner.results.begin(), runner.results.end(), name), 1)
        << runner.name << " does not list " << name;
  return out;
}

}  // namespace rankscope::test
