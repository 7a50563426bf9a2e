// A store with trials of the fake runner.
#pragma once

#include <set>

#include "base/test_support.h"
#include "sweep/fake_runner.h"
#include "sweep/tables.h"

namespace rankscope::test {

/// Ranks 1, 2, 4, 8 times `seeds` seeds, `steps` steps of `pause` milliseconds.
inline Study fake_study(int seeds, int steps, double pause, const std::string& fault = "none") {
  return parse_study(
      fmt::format("title = \"Fake\"\nrunner = \"fake\"\n[fixed]\nfault = \"{}\"\npause = {}\n[grid]\n"
                  "rank = [1, 2, 4, 8]\n[protocol]\nsteps = {}\nseeds = {}\n[figure]\nx = \"rank\"\n",
                  fault, pause, steps, seeds),
      "fake", "fake.toml");
}

inline void fill(Store& store, const Study& study) {
  store.keep_study(study);
  store.add(study, trials(study, fake_runner(), {}));
}

inline std::vector<std::string> ids(const Store& store, TrialState state) {
  std::vector<std::string> out;
  for (const StoredTrial& trial : store.trials())
    if (trial.state == state) out.push_back(trial.id);
  return out;
}

inline std::vector<std::string> export_store(const Store& store, const std::filesystem::path& folder,
                                             const std::string& format) {
  return export_tables(store.study(), store.trials(), folder, format);
}

/// Every trial is done, with the value an undisturbed run would have.
inline void expect_all_done_and_right(const Store& store) {
  for (const StoredTrial& trial : store.trials()) {
    EXPECT_EQ(trial.state, TrialState::done) << trial.reason;
    if (trial.state == TrialState::done) {
      EXPECT_EQ(trial.values.at("test_mse"), fake_sum(parse_canonical(trial.config, fake_runner().keys)));
    }
  }
}

}  // namespace rankscope::test
